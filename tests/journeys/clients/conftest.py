"""Programs in environments of their own, which no test collects."""

collect_ignore_glob = ["*.py"]
