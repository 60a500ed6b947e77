"""from_openai, from_anthropic and from_ollama: text, stream"""
from trying import *
import anthropic
import ollama
import openai
import outlines as sdk

models = {
    "openai": sdk.from_openai(openai.OpenAI(base_url=V1, api_key=KEY), MODEL), "anthropic": sdk.from_anthropic(anthropic.Anthropic(base_url=URL, api_key=KEY), MODEL),
    "ollama": sdk.from_ollama(ollama.Client(host=URL), MODEL),
}
for name, model in models.items():
    more = {"max_tokens": 900} if name == "anthropic" else {}
    check(name, lambda: has(model("hi", **more), "Hello!"))
    check(name + " stream", lambda: has("".join(model.stream("hi", **more)), "Hello!"))
done()
