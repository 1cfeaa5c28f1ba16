"""Format in which models of all kinds are saved: a folder of one JSON file and ``.npy`` arrays, verified before use.

``model.json`` has the format, its version, the class of the model, the model's own entries (`Record`), and the type,
shape and SHA-256 of each array, which is in a ``.npy`` file next to it. A checksum covers the rest of ``model.json``,
so that damage and edits are found. Nothing is pickled, so loading a model cannot run code.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from kernpool.data.array_validation import TableError
from kernpool.data.atomic_files import is_same_file, refuse_existing, sha256, whole_folder
from kernpool.execution.error_messages import abbreviate, explain_calls

HEADER, FORMAT, VERSION = "model.json", "kernpool model", 1
ENVELOPE = {"format", "version", "estimator", "arrays"}  # entries of `model.json` that all kinds of models have
ARRAY_ENTRIES = {"dtype": str, "shape": list, "sha256": str}
REMEDY = "copy the whole folder again or fit the model again"


class ModelFileError(ValueError):
    """Error for a saved model that is incomplete, truncated, edited, or of another format or version."""


@dataclass(frozen=True)
class Record:
    """Content of a saved model: JSON entries and named arrays.

    ``_to_record`` of the model's class returns it, and ``_from_record`` takes it.

    Parameters
    ----------
    header : dict
        JSON values of this kind of model. If they were read from a file, they have not been validated.
    arrays : mapping of str to ndarray
        If they were read, they are what was written, and have not been validated further.
    source : Path
        The file of the header, for messages.
    memory : int, optional
        Bytes that pooling may take, for a model that refers to its rows.
    """

    header: dict[str, Any]
    arrays: Mapping[str, NDArray[Any]]
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
            f"{folder} exists and is no kernpool model of this version, so it is not replaced; choose another name "
            f"({error})"
        ) from None
    for file in files:
        if any(is_same_file(file, other) for other in refers_to):
            raise FileExistsError(
                f"{file} holds rows that the model refers to, so it is not replaced; choose another folder"
            )
    return {file.name for file in files}


def files_of(folder: Path) -> list[Path]:
    """Return the paths of a saved model's files, which its header lists; raise ModelFileError for an invalid header."""
    return [folder / name for name in (*(f"{name}.npy" for name in read_header(folder)["arrays"]), HEADER)]


def referred_files(header: Mapping[str, Any]) -> list[Path]:
    """Return the paths of the data files that a saved model refers to; an empty list if it contains its own rows."""
    reference = header.get("chunks")
    if not reference:
        return []
    path = Path(reference["path"])
    return [path / name for name in reference["files"]] if path.is_dir() else [path]


def write_record(folder: str | Path, model: Any, record: Record, *, force: bool = False) -> None:
    """Write a model to a folder, completely or not at all; parameters and errors as in `kernpool.save_model`."""
    refers_to = referred_files(record.header)
    with whole_folder(Path(folder), HEADER, lambda path: check_model_folder(path, force, refers_to)) as temporary:
        arrays = {name: write_array(temporary / f"{name}.npy", array) for name, array in record.arrays.items()}
        envelope = {"format": FORMAT, "version": VERSION, "estimator": type(model).__name__, "arrays": arrays}
        write_header(temporary, envelope | record.header)


def read_record(folder: str | Path, kinds: Sequence[type[Any]], *, memory: int | None = None) -> Any:
    """Read a saved model of one of the given classes; parameters and errors as in `kernpool.load_model`."""
    if not isinstance(folder, str | PathLike):
        raise TypeError(f"folder must be the path of a saved model, got {abbreviate(folder)}")
    folder = Path(folder)
    header, source = read_header(folder), folder / HEADER
    kind = next((kind for kind in kinds if kind.__name__ == header["estimator"]), None)
    if kind is None:
        expected = " or ".join(kind.__name__ for kind in kinds)
        raise ModelFileError(
            f"{folder} holds a {header['estimator']!s:.40}, not a {expected}; load_model reads models of all kinds"
        )
    try:
        arrays = {name: read_array(folder / f"{name}.npy", entry) for name, entry in header["arrays"].items()}
        entries = {name: entry for name, entry in header.items() if name not in ENVELOPE}
        return kind._from_record(Record(entries, arrays, source, memory))
    except (ModelFileError, TableError):
        raise
    # What reading entries of a wrong kind may raise.
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        raise ModelFileError(f"{source} was edited: {error}; {REMEDY}") from None


@explain_calls
class SavedModel:
    """Mixin of models with ``_to_record`` and ``_from_record``: methods that save and load them."""

    def save(self, folder: str | Path, *, force: bool = False) -> None:
        """Save the model to a folder, as `kernpool.save_model` does, without loading what other models need.

        Parameters
        ----------
        folder, force
            As there.
        """
        write_record(folder, self, cast(Any, self)._to_record(), force=force)

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Load a model of this class from a folder, as `kernpool.load_model` does; refuse other classes.

        Parameters
        ----------
        folder : str or Path
            Folder written by `save` or `kernpool.save_model`.
        """
        return cast(Self, read_record(folder, (cls,)))


def read_header(folder: str | Path) -> dict[str, Any]:
    """Read ``model.json``, the header of a saved model; check its format, version, checksum and list of arrays."""
    path = Path(folder) / HEADER
    if not path.is_file():
        raise ModelFileError(f"{folder} is no kernpool model: it has no {HEADER}; kernpool.save_model writes one")
    try:
        header: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:  # no JSON, no text, a number of too many digits, or nested too deep
        raise ModelFileError(f"{path} is truncated or edited: {error}; {REMEDY}") from None
    found = header.get("format") if isinstance(header, dict) else None
    if found != FORMAT:
        raise ModelFileError(
            f"{path} is no {FORMAT}, but has the format {found!r:.40}; name the folder of a model that kernpool saved"
        )
    version = header.get("version")
    if type(version) is not int or version != VERSION:
        raise ModelFileError(
            f"{path} is of format version {version!r:.40}, this kernpool reads version {VERSION}; "
            "use the kernpool that wrote it, or fit the model again and save it with this one"
        )
    if header.pop("checksum", None) != checksum(header):
        raise ModelFileError(f"{path} was edited or damaged: its checksum is wrong; {REMEDY}")
    arrays = header.get("arrays")
    if "estimator" not in header or not isinstance(arrays, dict) or not all(map(_is_listed, arrays, arrays.values())):
        raise ModelFileError(f"{path} was edited: it does not describe its arrays, or has no class; {REMEDY}")
    return header


def _is_listed(name: str, entry: Any) -> bool:
    """Return whether an entry of ``"arrays"`` describes an array, in a file of the model's folder."""
    described = isinstance(entry, dict) and {field: type(value) for field, value in entry.items()} == ARRAY_ENTRIES
    return described and Path(f"{name}.npy").name == f"{name}.npy" and all(type(n) is int for n in entry["shape"])


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


def write_array(path: Path, array: NDArray[Any]) -> dict[str, Any]:
    """Write an array to a ``.npy`` file; return a dict of its type, shape and hash, for the model's header."""
    if array.dtype.kind == "O":
        array = array.astype(str)
    with path.open("wb") as file:
        np.save(file, np.asarray(array, order="C"), allow_pickle=False)
    return {"dtype": array.dtype.str, "shape": list(array.shape), "sha256": sha256(path)}


def read_array(path: Path, entry: Mapping[str, Any]) -> NDArray[Any]:
    """Read an array from a ``.npy`` file, after checking its hash, type and shape.

    The hash is checked before any of the content is interpreted or allocated.
    """
    if not path.is_file():
        raise ModelFileError(f"{path} is missing; {REMEDY}")
    if sha256(path) != entry["sha256"]:
        raise ModelFileError(f"{path} was edited, truncated or damaged: it is not what {HEADER} recorded; {REMEDY}")
    try:
        mapped = np.load(path, mmap_mode="r", allow_pickle=False)  # reads the header alone, allocates nothing
        described = [mapped.dtype.str, list(mapped.shape)]  # which an archive of arrays has not
    except Exception as error:  # a damaged header can make NumPy raise nearly anything
        raise ModelFileError(f"{path} is no .npy file of numbers: {error}; {REMEDY}") from None
    if described != [entry["dtype"], entry["shape"]]:
        raise ModelFileError(f"{path} does not have the type and shape that {HEADER} recorded; {REMEDY}")
    return np.array(mapped)


def check_array(name: str, array: NDArray[Any], kinds: str, shape: tuple[int, ...]) -> NDArray[Any]:
    """Return an array that was read; raise ValueError unless its type and shape are those of the rest of the model."""
    if array.dtype.kind not in kinds or array.shape != shape:
        raise ValueError(f"{name} holds {array.dtype} in shape {array.shape}, where {shape} is expected")
    return array
