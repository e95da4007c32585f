"""The judgement of records: verdicts, comparisons, baselines. It reads records and runs nothing."""
