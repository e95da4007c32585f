"""What a report says, before it is drawn: one file a kind of record, each of pure functions.

`section` is what all of it is made of, and `record` chooses the file of a record's kind: `bench`,
`ladder`, `compare`, `programs`, `profile`, `run`, `validate`, `statistical`, `adoption`, `train`, `sim`,
`scale`, `tune`, `trend`, `soak`, `suite`, `gate`, `diagnose`. What several kinds share: `facts` (machine,
code, path, method), `notices`, `breakdown` (where the time went), `findings` (of probes), `slow` (single
steps), `plot`. What is no record: `overview` (all records of a folder), `listings` (worlds, keys, the
machine).
"""
