"""Where the time goes: phases, spans, slow steps, traces and probes."""
