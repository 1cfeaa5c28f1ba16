"""Dense reference of what classifiers say of probabilities: tables of weights, and fits to one more row."""

import numpy as np


def weight_of(model):
    return np.ones(len(model.value_)) if model.key_weight_ is None else model.key_weight_


def labels_of(model):
    return np.asarray(model.value_, dtype=np.float64)


def shares(model, X):
    """Shares of all training rows in the probabilities at X, of shape (m, n)."""
    weight = weight_of(model)
    alpha = model.attention_weights(X)
    return (1 - model.prior_share_) * alpha + model.prior_share_ * weight / weight.sum()


def left_out(model, X):
    """Probabilities of the training rows X, each without one unit of itself."""
    weight, label = weight_of(model), labels_of(model)
    table, found = model.attention_weights(X), np.empty(label.shape)
    for i, row in enumerate(table):
        rest, others = row.copy(), weight.copy()
        if weight[i] > 0:
            rest[i] *= max(weight[i] - 1.0, 0.0) / weight[i]
            others[i] = max(weight[i] - 1.0, 0.0)
        prior = others @ label / others.sum()
        pooled = prior if rest.sum() == 0 else rest @ label / rest.sum()
        found[i] = (1 - model.prior_share_) * pooled + model.prior_share_ * prior
    return found


def standard_errors(model, X_train, X):
    """Of all probabilities at X."""
    weight = weight_of(model)
    kept = weight > 0
    squared = (labels_of(model) - left_out(model, X_train)) ** 2
    return np.sqrt((shares(model, X)[:, kept] ** 2 / weight[kept]) @ squared[kept])
