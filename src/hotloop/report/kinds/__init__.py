"""What a report says of each kind of record, before it is rendered: one file a kind, each of pure functions.

`record` chooses the file of a record's kind: `bench` (and ladders), `compare`, `programs`, `profile`, `run`,
`validate` (also by distributions), `train`, `sim`, `sweep` (and suites), `tune`, `soak`, `gate`, `diagnose`.
What several kinds share: `times` (where the time went), `findings` (of probes), `slow`
(single steps). What is no record: `overview` (many records in a table), `listings` (worlds, keys).
"""
