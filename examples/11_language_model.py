"""A tiny language model whose attention is a kernel regression, next to one with dot products."""

import matplotlib.pyplot as plt
import torch
from torch import nn

from kernpool.torch import GaussianSimilarity, MultiheadPooling

torch.set_num_threads(1)
WIDTH, HEADS, LENGTH, STEPS = 32, 4, 32, 150
text = "a query asks, keys answer by how near they are, and values are what they say; a mean of them is read aloud. "
letters = sorted(set(text))
codes = torch.tensor([letters.index(letter) for letter in 20 * text])
later = nn.Transformer.generate_square_subsequent_mask(LENGTH)


class Model(nn.Module):
    """One encoder layer that predicts the next letter from those before it."""

    def __init__(self, attention: nn.Module) -> None:
        super().__init__()
        self.letter, self.place = nn.Embedding(len(letters), WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, dropout=0.0, batch_first=True)
        self.layer.self_attn = attention
        self.scores = nn.Linear(WIDTH, len(letters))

    def forward(self, letter: torch.Tensor) -> torch.Tensor:
        """Return a score for each letter that may come next, at every place."""
        hidden = self.letter(letter) + self.place.weight
        return self.scores(self.layer(hidden, src_mask=later, is_causal=True))


def train(attention: nn.Module) -> list[float]:
    """Return the loss of each step."""
    torch.manual_seed(0)
    model, losses = Model(attention), []
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(STEPS):
        starts = torch.randint(len(codes) - LENGTH, (16, 1))
        rows = codes[starts + torch.arange(LENGTH + 1)]
        loss = nn.functional.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


torch.manual_seed(0)
similarity = GaussianSimilarity((WIDTH / HEADS) ** 0.5)  # the size of projected letters
attentions = {
    "Gaussian": MultiheadPooling(WIDTH, HEADS, batch_first=True, similarity=similarity),
    "dot product": nn.MultiheadAttention(WIDTH, HEADS, batch_first=True),
}
for name, attention in attentions.items():
    losses = train(attention)
    print(f"{name}: loss {losses[0]:.2f} at first, {losses[-1]:.2f} after {STEPS} steps")
    plt.plot(losses, label=name)
print(f"learned width {similarity.bandwidth:.2f}")
plt.legend()
plt.gca().set(xlabel="step", ylabel="cross entropy of the next letter")
plt.savefig("language_model.png")
