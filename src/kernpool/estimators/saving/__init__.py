"""Models on disk: JSON and arrays, whole or not at all, and checked before anything is believed."""

from kernpool.estimators.saving.models import load_model, save_model

__all__ = ["load_model", "save_model"]
