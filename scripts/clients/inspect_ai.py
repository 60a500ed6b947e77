"""a task with a tool over chat completions, responses, messages and Ollama"""
import tempfile
from trying import *
from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import get_model
from inspect_ai.scorer import includes
from inspect_ai.solver import generate, use_tools
from inspect_ai.tool import tool

os.environ.update(LOCAL_API_KEY=KEY, LOCAL_BASE_URL=V1, OLLAMA_BASE_URL=V1)


@tool
def weather():
    async def execute(city: str) -> str:
        """Weather of a city.

        Args:
            city: name of the city
        """
        return f"sunny in {city}"

    return execute


def run(model):
    task = Task(dataset=[Sample(input='CALL<<weather {"city": "Oslo"}>>', target="sunny in Oslo")], solver=[use_tools(weather()), generate()], scorer=includes())
    log = eval(task, model=model, display="none", log_dir=tempfile.mkdtemp(), score_display=False)[0]
    assert log.status == "success", log.error
    assert log.results.scores[0].metrics["accuracy"].value == 1, log.samples[0].output


models = {
    "chat": lambda: get_model("openai-api/local/" + MODEL), "responses": lambda: get_model("openai-api/local/" + MODEL, responses_api=True),
    "messages": lambda: get_model("anthropic/" + MODEL, base_url=URL, api_key=KEY), "ollama": lambda: get_model("ollama/" + MODEL),
}
for name, model in models.items():
    check(name, lambda: run(model()))
done()
