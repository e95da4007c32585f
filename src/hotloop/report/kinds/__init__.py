"""What a report says of each kind of record, before it is rendered: one file a kind, each of pure functions.

`record` chooses the file of a record's kind: `bench`, `ladder`, `compare`, `programs`, `profile`, `run`,
`validate`, `statistical`, `adoption`, `train`, `sim`, `scale`, `tune`, `trend`, `soak`, `suite`, `gate`,
`diagnose`. What several kinds share: `notices`, `times` and `breakdown` (where the time went), `findings`
(of probes), `slow` (single steps), `plot`. What is no record: `overview` (all records of a folder),
`listings` (worlds, keys, the machine).
"""
