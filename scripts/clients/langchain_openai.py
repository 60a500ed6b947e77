"""ChatOpenAI: invoke, stream with usage, bind_tools and a turn with the result, structured output by a tool, the Responses API"""
from trying import *
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import BaseModel

llm = ChatOpenAI(model=MODEL, base_url=V1, api_key=KEY, stream_usage=True, max_retries=0)
weather = tool(get_weather)


class Person(BaseModel):
    name: str
    age: int


def tools():
    messages = [HumanMessage("WEATHER")]
    bound = llm.bind_tools([weather], strict=True)
    messages.append(bound.invoke(messages))
    call = messages[-1].tool_calls[0]
    messages.append(ToolMessage(weather.invoke(call["args"]), tool_call_id=call["id"]))
    has(bound.invoke(messages).content, SAID)


def stream():
    whole = None
    for chunk in llm.stream("hi"):
        whole = chunk if whole is None else whole + chunk
    has(whole.content, "Hello!")
    assert whole.usage_metadata["output_tokens"] > 0, whole


def structured():
    p = llm.with_structured_output(Person, method="function_calling").invoke('CALL<<Person {"name": "Ada", "age": 36}>>')
    assert p == Person(name="Ada", age=36), p


check("chat", lambda: has(llm.invoke("hi").content, "Hello!"))
check("stream", stream)
check("tools", tools)
check("structured", structured)
check("responses", lambda: has(ChatOpenAI(model=MODEL, base_url=V1, api_key=KEY, use_responses_api=True, max_retries=0).invoke("hi").text, "Hello!"))
done()
