"""Runs the statements of the standard input in DuckDB, in this folder, and prints the rows of each as a line of JSON."""

import json
import sys

import duckdb

db = duckdb.connect()
for statement in json.load(sys.stdin):
    print(json.dumps(db.sql(statement).fetchall(), default=str))
