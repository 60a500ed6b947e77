"""ChatOllama and OllamaLLM: invoke, stream, bind_tools and a turn with the result"""
from trying import *
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_ollama import ChatOllama, OllamaLLM

llm = ChatOllama(model=MODEL, base_url=URL, seed=2**62, keep_alive="-1")
weather = tool(get_weather)


def tools():
    messages = [HumanMessage("WEATHER")]
    bound = llm.bind_tools([weather])
    messages.append(bound.invoke(messages))
    call = messages[-1].tool_calls[0]
    messages.append(ToolMessage(weather.invoke(call["args"]), tool_call_id=call["id"]))
    has(bound.invoke(messages).content, SAID)


check("chat", lambda: has(llm.invoke("hi").content, "Hello!"))
check("stream", lambda: has("".join(c.content for c in llm.stream("hi")), "Hello!"))
check("tools", tools)
check("generate", lambda: has(OllamaLLM(model=MODEL, base_url=URL).invoke("hi"), "Hello!"))
done()
