"""ChatAnthropic: invoke, stream with usage, bind_tools and a turn with the result, structured output by a forced tool"""
from trying import *
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from pydantic import BaseModel

llm = ChatAnthropic(model=MODEL, base_url=URL, api_key=KEY, max_tokens=900, max_retries=0)
weather = tool(get_weather)


class Person(BaseModel):
    name: str
    age: int


def tools():
    messages = [HumanMessage("WEATHER")]
    bound = llm.bind_tools([weather])
    messages.append(bound.invoke(messages))
    call = messages[-1].tool_calls[0]
    messages.append(ToolMessage(weather.invoke(call["args"]), tool_call_id=call["id"]))
    has(bound.invoke(messages).content, SAID)


def stream():
    whole = None
    for chunk in llm.stream("hi"):
        whole = chunk if whole is None else whole + chunk
    has(whole.content, "Hello!")
    u = whole.usage_metadata
    assert u["input_tokens"] == llm.invoke("hi").usage_metadata["input_tokens"] > 0, u


check("chat", lambda: has(llm.invoke("hi").content, "Hello!"))
check("stream", stream)
check("tools", tools)
check("structured", lambda: llm.with_structured_output(Person).invoke('CALL<<Person {"name": "Ada", "age": 36}>>') == Person(name="Ada", age=36))
done()
