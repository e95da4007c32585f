"""Names: by which words the rows of anybody's loop are known for what they are."""

import re


def pattern(*words: str) -> "re.Pattern[str]":
    return re.compile("|".join(words))


COPIES = pattern(
    r"device.?to.?host",
    r"host.?to.?device",
    r"\bd2h\b",
    r"\bh2d\b",
    r"to.?cpu",
    r"to.?host",
    r"memcpy",
    r"read.?back",
    r"\.cpu\b",
    r"_to_copy",
    r"\bcopy_$",
)
ON_GPU = pattern(COPIES.pattern, "stack and back")
TEACHER = pattern("teacher", "expert", "oracle", "labell?er")
STORE = pattern(r"\bstore", "buffer", "replay")
STUDENT = pattern("student", "policy", "forward", "inference", r"\bact\b", "predict")
RESETS = pattern("reset")
SKEW = pattern("from the first to the last", "straggler", "slowest", "skew")
LOGGING = pattern(
    r"(\b|_)logs?\b", "logg", "log_", r"\bprint", "tensorboard", "wandb", r"\bflush", "write.metrics"
)
LOGGING_CODE = pattern(r"\blog(s|ger|ging)?\.", r"\bprint\(", r"\.write(row|rows|lines)?\(", r"\.flush\(")
COMMIT_CODE = pattern(r"\.commit\(")
QUERY_CODE = pattern(
    r"\.execute\((?!.*\b(insert|update|delete|create)\b)", r"\.fetch(one|many|all)\(", "read_sql"
)
EVALUATION = pattern(r"eval(?!uate_actions)", "test.?episodes")
INDEX = pattern("rebuild", "build.?index", r"\bindex\b", "kd.?tree", "quad.?tree", "spatial")
INSERTS = pattern("insert", r"\bappend\b", "enqueue", r"\badd\b", r"\bput\b", r"\bpush\b")
SQL = pattern(r"'execute' of", r"\bexecute \(")
IN_FILE = pattern(r":\d+\)$")
BARRIER = pattern("barrier", r"\bjoin\b", "rendezvous", "all.?reduce", "synchroni[sz]e")
WAITS = pattern("wait", "queue", r"\brecv", r"_recv\b", "receive", r"\bpoll", "sleep", r"\block\b", "acquire")
LEARNING = pattern("forward", "backward", "student", "optimi[sz]er")
ENV_STEP = pattern(r"^envs?([._ ]?step)?$", "^environment$", r"\.step$", "^step$")
IMPORTS = pattern("^importing modules")
SLOW_PATH = pattern("fall.?back", "slow.?path", "python_path", "reference_steps")
