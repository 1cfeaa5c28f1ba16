"""Tables in files: reading and writing of CSV, TSV, Parquet and `.npy`, and detection of column types.

Read `table.py` first: the table as it was read, with errors that name file, row and column. `file_formats.py` reads and
writes tables in all formats, `text_files.py` reads text files, `decimal_marks.py` distinguishes decimal commas from
points, and `column_types.py` decides which columns are numbers, categories or dates.
"""
