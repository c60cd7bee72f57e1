"""Studies: the only place where a run begins, spends, resumes and is recorded."""
