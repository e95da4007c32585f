"""What a report says of each kind of record, before it is rendered, as pure functions.

`record` chooses the file of a record's kind and draws many records in a table: `bench` (and ladders),
`compare`, `profile` (and slow steps), `validate` (also by distributions), `train` (and loops of the user's
own), `sim`, `sweep` (and tune, suites), `checks` (gate, soak), `diagnose`; programs stand beside targets.
`times` is shared: where the time went, and what probes found. `listings` has no records: worlds, keys.
"""
