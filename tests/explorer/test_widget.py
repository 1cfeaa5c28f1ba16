"""The widget in a running Jupyter kernel: comms both ways, and questions to the engine."""

import asyncio

import pytest

nbformat = pytest.importorskip("nbformat", reason="needs nbclient, ipykernel and anywidget: the test extra")
nbclient = pytest.importorskip("nbclient", reason="needs nbclient, ipykernel and anywidget: the test extra")
pytest.importorskip("ipykernel", reason="needs nbclient, ipykernel and anywidget: the test extra")
pytest.importorskip("anywidget", reason="needs nbclient, ipykernel and anywidget: the test extra")

pytestmark = pytest.mark.slow  # starts a kernel: 6 s

CELLS = [
    "from kernpool import explore\nexplorer = explore('make_sine_power', seed=2)\nexplorer",
    "explorer.widget.bandwidth = [0.125]\nexplorer.widget.kernel = 'epanechnikov'",
    "heard = []\nexplorer.widget.observe(lambda change: heard.append(change['new']), 'bandwidth')",
    "print(explorer.widget.bandwidth, explorer.widget.degree, explorer.widget.query, heard)",
    "model = explorer.model\nprint(type(model).__name__, model.kernel, model.bandwidth_, model.predict([[2.5]])[0])",
    "import traitlets\n"
    "try:\n    explorer.widget.bandwidth = [-1.0]\nexcept traitlets.TraitError as error:\n    print(error)",
]


class Kernel:
    """A notebook whose cells run one by one, and the page's side of its comms."""

    def __init__(self):
        self.notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in CELLS])
        self.client = nbclient.NotebookClient(self.notebook, timeout=120, kernel_name="python3")

    def run(self, index):
        cell = self.client.execute_cell(self.notebook.cells[index], index)
        return [output for output in cell["outputs"] if output.get("name") != "stderr"]  # that loops are compiled

    def send(self, comm, data, buffers=()):
        message = self.client.kc.session.msg("comm_msg", {"comm_id": comm, "data": data})
        self.client.kc.session.send(self.client.kc.shell_channel.socket, message, buffers=list(buffers))

    @property
    def state(self):
        (comm,) = (key for key, state in self.client.widget_state.items() if state.get("_model_name") == "AnyModel")
        return comm, self.client.widget_state[comm]


@pytest.fixture(scope="module")
def kernel():
    notebook = Kernel()
    with notebook.client.setup_kernel():
        yield notebook


def test_it_displays_itself_and_traits_go_both_ways(kernel):
    (shown,) = kernel.run(0)
    view = shown["data"]["application/vnd.jupyter.widget-view+json"]
    comm, state = kernel.state
    assert view["model_id"] == comm
    assert "export" in state["_esm"]
    assert state["payload"]["title"] == "make_sine_power"
    assert (state["kernel"], state["degree"], len(state["query"])) == ("gaussian", 0, 1)

    kernel.run(1)  # Python leads
    assert (kernel.state[1]["bandwidth"], kernel.state[1]["kernel"]) == ([0.125], "epanechnikov")

    kernel.run(2)  # the page leads
    changed = {"bandwidth": [0.75], "degree": 1, "query": [2.5]}
    kernel.send(comm, {"method": "update", "state": changed, "buffer_paths": []})
    (printed,) = kernel.run(3)
    assert printed["text"] == "[0.75] 1 [2.5] [[0.75]]\n"


def test_the_model_is_what_the_page_shows(kernel):
    from kernpool import LocalLinearRegressor
    from kernpool.datasets import make_sine_power

    (printed,) = kernel.run(4)
    sample = make_sine_power(random_state=2)
    fitted = LocalLinearRegressor("epanechnikov", 0.75, ridge=0.0).fit(sample.x_train[:, None], sample.y_train)
    assert printed["text"] == f"LocalLinearRegressor epanechnikov [0.75] {fitted.predict([[2.5]])[0]}\n"


def test_a_bandwidth_that_is_none_is_refused(kernel):
    (printed,) = kernel.run(5)
    assert printed["text"] == "bandwidth must be finite and positive, got [-1.0]\n"


def test_questions_are_answered_by_the_engine(kernel):
    comm, _ = kernel.state
    question = {"kind": "query", "query": {"numeric": [2.5]}, "settings": {}}
    for number, request in ((1, question), (2, {"kind": "evil"})):
        kernel.send(comm, {"method": "custom", "content": {"id": number, "request": request}})
    answers = asyncio.run(_answers(kernel.client.kc, comm, 2))
    assert [answer["id"] for answer in answers] == [1, 2]
    assert answers[0]["answer"]["reach"] == 50
    assert "of kind" in answers[1]["error"]


async def _answers(client, comm, count):
    found = []
    while len(found) < count:
        message = client.get_iopub_msg(timeout=60)
        message = await message if asyncio.iscoroutine(message) else message
        content = message["content"]
        if message["msg_type"] == "comm_msg" and content["comm_id"] == comm and content["data"]["method"] == "custom":
            found.append(content["data"]["content"])
    return found
