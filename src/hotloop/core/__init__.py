"""The ground everything stands on: clock and spans, errors, settings, records, machine and registry."""
