"""Doctests of a module whose extra is not installed cannot even be collected."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("torch") else ["src/kernpool/torch/*", "src/kernpool/estimators/learned_[rc]*"]
collect_ignore_glob += [] if find_spec("dask") else ["src/kernpool/dask*", "src/kernpool/estimators/dask_*"]
