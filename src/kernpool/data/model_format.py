"""Format in which models are saved on disk: a folder of one JSON file and arrays, verified before any of it is used.

``model.json`` names a format and its version, and holds the model's entries (`Record`). Arrays are stored next to it:
in ``.npy`` files, whose type, shape and SHA-256 it lists, or all in one safetensors file, whose SHA-256 it has. A
checksum covers the rest of ``model.json``, so that damage and edits are found. Nothing is pickled, so loading a model
cannot run code.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool.data.array_validation import TableError
from kernpool.data.atomic_files import is_same_file, refuse_existing, sha256, whole_folder
from kernpool.execution.error_messages import abbreviate

HEADER, TENSORS = "model.json", "tensors.safetensors"
REMEDY = "copy the whole folder again or fit the model again"


class ModelFileError(ValueError):
    """Error for a saved model that is incomplete, truncated, edited, or of another format or version."""


@dataclass(frozen=True)
class Record:
    """Content of a saved model: a JSON header and named arrays.

    ``_to_record`` of the model's class returns it, and ``_from_record`` takes it.

    A class that can be saved has both, and says its `_record_format` and `_record_version`.

    Parameters
    ----------
    header : dict
        JSON values: format, version, for an estimator the name of its class, and what that adds. If it was read from a
        file it is complete, but its entries have not been validated.
    arrays : mapping of str to ndarray
        From ``.npy`` files each is read, and compared with its digest, when it is asked for.
    in_one_file : bool, default=False
        Whether arrays, all of float64, are written to one file of safetensors.
    source : Path
        The file of the header, for messages.
    memory : int, optional
        Bytes that pooling may take, for a model that refers to its rows.
    """

    header: dict[str, Any]
    arrays: Mapping[str, NDArray[Any]]
    in_one_file: bool = False
    source: Path = Path(HEADER)
    memory: int | None = None


def check_model_folder(folder: Path, force: bool, refers_to: Sequence[Path] = ()) -> set[str]:
    """Return the names of the files that saving a model to a folder replaces; raise an error if that is not allowed.

    Call it before the long computation, too.

    Parameters
    ----------
    folder : Path
        Where the model is to be written.
    force : bool
        Whether it may replace a model.
    refers_to : sequence of Path
        Files that the new model refers to.

    Returns
    -------
    set of str
        The files that the header of a model there lists, and the header; none if there is no folder, or an empty one.

    Raises
    ------
    FileExistsError
        If there is a folder that is not empty, and `force` is false, it is no model, or the new model refers to one of
        those files.
    """
    is_empty = folder.is_dir() and not any(folder.iterdir())
    if not force or is_empty or not folder.exists():
        refuse_existing(folder, force, folder=True)
        return set()
    try:
        files = files_of(folder)
    except ModelFileError as error:
        raise FileExistsError(
            f"{folder} exists and is no kernpool model, so it is not replaced; choose another name ({error})"
        ) from None
    for file in files:
        if any(is_same_file(file, other) for other in refers_to):
            raise FileExistsError(
                f"{file} holds rows that the model refers to, so it is not replaced; choose another folder"
            )
    return {file.name for file in files}


def files_of(folder: Path) -> list[Path]:
    """Return the paths of a saved model's files, which its header lists; raise ModelFileError for an invalid header."""
    header = read_json(folder)
    arrays = header.get("arrays")
    names = [TENSORS] if "sha256" in header else [f"{name}.npy" for name in arrays] if isinstance(arrays, dict) else []
    if not str(header.get("format")).startswith("kernpool ") or any(Path(name).name != name for name in names):
        raise ModelFileError(f"{folder / HEADER} was written by another program or edited")
    if header.get("checksum") != checksum({name: entry for name, entry in header.items() if name != "checksum"}):
        raise ModelFileError(f"{folder / HEADER} was edited or damaged: its checksum is wrong; {REMEDY}")
    return [folder / name for name in (*names, HEADER)]


def referred_files(header: Mapping[str, Any]) -> list[Path]:
    """Return the paths of the data files that a saved model refers to; an empty list if it contains its own rows."""
    reference = header.get("chunks")
    if not reference:
        return []
    path = Path(reference["path"])
    return [path / name for name in reference["files"]] if path.is_dir() else [path]


def write_record(folder: str | Path, record: Record, *, force: bool = False) -> None:
    """Write a model to a folder, completely or not at all; parameters and errors as in `kernpool.save_model`."""
    refers_to = referred_files(record.header)
    if record.in_one_file:
        _safetensors()  # says which extra is missing before anything is made
    with whole_folder(Path(folder), HEADER, lambda path: check_model_folder(path, force, refers_to)) as temporary:
        if record.in_one_file:
            arrays = {name: np.array(array, np.float64, order="C") for name, array in record.arrays.items()}
            _safetensors().save_file(arrays, temporary / TENSORS)
            files: dict[str, Any] = {"sha256": sha256(temporary / TENSORS)}
        else:
            files = {"arrays": {n: write_array(temporary / f"{n}.npy", array) for n, array in record.arrays.items()}}
        write_header(temporary, record.header | files)


def read_record(folder: str | Path, kinds: Sequence[type[Any]], *, memory: int | None = None) -> Any:
    """Read a saved model of one of the given classes; parameters and errors as in `kernpool.load_model`."""
    if not isinstance(folder, str | PathLike):
        raise TypeError(f"folder must be the path of a saved model, got {abbreviate(folder)}")
    folder = Path(folder)
    header, source = read_header(folder, kinds), folder / HEADER
    of_format = [kind for kind in kinds if kind._record_format == header["format"]]
    name = header.get("estimator", of_format[0].__name__)  # a running pool is no estimator, and has no such entry
    kind = next((kind for kind in of_format if kind.__name__ == name), None)
    if kind is None:
        expected = " or ".join(kind.__name__ for kind in of_format)
        raise ModelFileError(f"{folder} holds a {name!s:.40}, not a {expected}; load_model reads models of all kinds")
    in_one_file = "sha256" in header
    try:
        arrays = _read_tensors(folder / TENSORS, header["sha256"]) if in_one_file else StoredArrays(folder, header)
        return kind._from_record(Record(header, arrays, in_one_file, source, memory))
    except (ModelFileError, TableError):
        raise
    # What reading entries of a wrong kind may raise.
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        raise ModelFileError(f"{source} was edited: {error}; {REMEDY}") from None


def read_header(folder: str | Path, kinds: Sequence[type[Any]]) -> dict[str, Any]:
    """Read ``model.json``, the header of a saved model, and check its checksum, format and version.

    One of the given classes must support the format and version.
    """
    folder = Path(folder)
    path, formats = folder / HEADER, {kind._record_format: kind._record_version for kind in kinds}
    header = read_json(folder)
    found = header.get("format")
    if not isinstance(found, str) or found not in formats:
        raise ModelFileError(
            f"{path} is no {' or '.join(formats)}, but has the format {found!r:.40}; name the folder of such a model"
        )
    version = header.get("version")
    if type(version) is not int or version != formats[found]:
        raise ModelFileError(
            f"{path} is of format version {version!r:.40}, this kernpool reads version {formats[found]}; "
            "use the kernpool that wrote it, or fit the model again and save it with this one"
        )
    if header.pop("checksum", None) != checksum(header):
        raise ModelFileError(f"{path} was edited or damaged: its checksum is wrong; {REMEDY}")
    return header


def read_json(folder: Path) -> dict[str, Any]:
    """Read ``model.json`` in a folder without checking its entries; return an empty dict if its JSON is no object."""
    path = folder / HEADER
    if not path.is_file():
        raise ModelFileError(f"{folder} is no kernpool model: it has no {HEADER}; kernpool.save_model writes one")
    try:
        header = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:  # no JSON, no text, a number of too many digits, or nested too deep
        raise ModelFileError(f"{path} is truncated or edited: {error}; {REMEDY}") from None
    return header if isinstance(header, dict) else {}


def write_header(folder: Path, header: dict[str, Any]) -> None:
    """Write the header of a model to ``model.json`` in a folder, and add a checksum."""
    (folder / HEADER).write_text(json.dumps(header | {"checksum": checksum(header)}, indent=2), encoding="utf-8")


def checksum(header: dict[str, Any]) -> str:
    """Return the SHA-256 hash of a JSON object, independent of the order of its entries."""
    return hashlib.sha256(json.dumps(header, sort_keys=True).encode()).hexdigest()


def plain(value: Any) -> Any:
    """Convert a parameter of an estimator to a value that JSON can hold; a random generator becomes None.

    A fitted model does not use its random generator.
    """
    if hasattr(value, "random_sample"):
        return None
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    return value.tolist() if hasattr(value, "tolist") else value


class StoredArrays(Mapping[str, NDArray[Any]]):
    """Arrays of a saved model by name, each read from its ``.npy`` file and verified when it is accessed.

    The entry ``"arrays"`` of the header lists them.
    """

    def __init__(self, folder: Path, header: dict[str, Any]) -> None:
        records = header.get("arrays")
        if not isinstance(records, dict):
            raise ValueError("it lists no arrays")
        self._folder, self._records = folder, records

    def __getitem__(self, name: str) -> NDArray[Any]:
        path = self._folder / f"{name}.npy"
        if name in self._records:
            return read_array(path, self._records[name])
        if path.exists():
            raise ValueError(f"it does not list {path.name}, which is there")
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._records)

    def __len__(self) -> int:
        return len(self._records)


def write_array(path: Path, array: NDArray[Any]) -> dict[str, Any]:
    """Write an array to a ``.npy`` file; return a dict of its type, shape and hash, for the model's header."""
    if array.dtype.kind == "O":
        array = array.astype(str)
    with path.open("wb") as file:
        np.save(file, np.ascontiguousarray(array), allow_pickle=False)
    return {"dtype": array.dtype.str, "shape": list(array.shape), "sha256": sha256(path)}


def read_array(path: Path, record: Any) -> NDArray[Any]:
    """Read an array from a ``.npy`` file, after checking its hash, type and shape.

    The hash is checked before any of the content is interpreted or allocated.
    """
    if not _is_record(record):
        raise ModelFileError(f"{path.parent / HEADER} was edited: it does not describe {path.name}; {REMEDY}")
    _check_digest(path, record["sha256"])
    try:
        mapped = np.load(path, mmap_mode="r", allow_pickle=False)  # reads the header alone, allocates nothing
        described = [mapped.dtype.str, list(mapped.shape)]  # which an archive of arrays has not
    except Exception as error:  # a damaged header can make NumPy raise nearly anything
        raise ModelFileError(f"{path} is no .npy file of numbers: {error}; {REMEDY}") from None
    if described != [record["dtype"], record["shape"]]:
        raise ModelFileError(f"{path} does not have the type and shape that {HEADER} recorded; {REMEDY}")
    return np.array(mapped)


def _read_tensors(path: Path, digest: Any) -> dict[str, NDArray[Any]]:
    """Read all arrays of a safetensors file, after checking its hash.

    They take no more memory than the file.
    """
    load_file = _safetensors().load_file
    _check_digest(path, digest)
    try:
        return dict(load_file(path))
    except Exception as error:  # SafetensorError, or a type of numbers that NumPy does not know
        raise ModelFileError(f"{path} is no file of safetensors: {error}; {REMEDY}") from None


def _check_digest(path: Path, digest: Any) -> None:
    if not path.is_file():
        raise ModelFileError(f"{path} is missing; {REMEDY}")
    if sha256(path) != digest:
        raise ModelFileError(f"{path} was edited, truncated or damaged: it is not what {HEADER} recorded; {REMEDY}")


def _safetensors() -> Any:
    try:
        import safetensors.numpy
    except ImportError as error:
        raise ImportError(
            "saving and loading learned models needs safetensors, which is not installed; install it with: "
            'pip install "kernpool[torch]"'
        ) from error
    return safetensors.numpy


def _is_record(record: Any) -> bool:
    return (
        isinstance(record, dict)
        and set(record) == {"dtype", "shape", "sha256"}
        and isinstance(record["dtype"], str)
        and isinstance(record["shape"], list)
        and all(type(length) is int for length in record["shape"])
        and isinstance(record["sha256"], str)
    )
