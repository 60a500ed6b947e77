"""calls with providers registered for OpenAI's chat, Anthropic's and Ollama's routes: text, tools"""
from trying import *
from mirascope import llm as sdk

sdk.register_provider("openai:completions", scope="openai/", base_url=V1, api_key=KEY)
sdk.register_provider("anthropic", scope="anthropic/", base_url=URL, api_key=KEY)
sdk.register_provider("ollama", scope="ollama/", base_url=V1)
weather = sdk.tool(get_weather)


def tools(model):
    r = model.call("WEATHER", tools=[weather])
    has(r.resume(r.execute_tools()).text(), SAID)


for name in ["openai", "anthropic", "ollama"]:
    more = {"max_tokens": 900} if name == "anthropic" else {}
    check(name, lambda: has(sdk.Model(f"{name}/{MODEL}", **more).call("hi").text(), "Hello!"))
    check(name + " tools", lambda: tools(sdk.Model(f"{name}/{MODEL}", **more)))
done()
