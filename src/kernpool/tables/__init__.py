"""Tables in files: reading and writing in all formats, and types of columns.

Read `table.py` first: the table as it was read, with errors that name file, row and column. `file_formats.py` reads and
writes, and `column_types.py` decides which columns are numbers, categories or dates.
"""
