"""OpenAIModel: generate, stream, a tool-calling agent"""
from trying import *
from smolagents import OpenAIModel, ToolCallingAgent, tool

model = OpenAIModel(model_id=MODEL, api_base=V1, api_key=KEY)
user = [{"role": "user", "content": "hi"}]
check("chat", lambda: has(model.generate(user).content, "Hello!"))
check("stream", lambda: has("".join(d.content or "" for d in model.generate_stream(user)), "Hello!"))
check("agent", lambda: has(ToolCallingAgent(tools=[tool(get_weather)], model=model, max_steps=3, verbosity_level=0).run('CALL<<final_answer {"answer": "done"}>>'), "done"))
done()
