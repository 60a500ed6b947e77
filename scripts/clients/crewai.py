"""an agent, a task, a crew over chat completions: text, tools"""
from trying import *
from crewai import LLM, Agent, Crew, Task
from crewai.tools import tool

llm = LLM(model="openai/" + MODEL, base_url=V1, api_key=KEY)
weather = tool("get_weather")(get_weather)


def crew(text, tools=()):
    agent = Agent(role="r", goal="g", backstory="b", llm=llm, tools=list(tools), verbose=False)
    return Crew(agents=[agent], tasks=[Task(description=text, expected_output="e", agent=agent)], verbose=False).kickoff().raw


check("llm", lambda: has(llm.call("hi"), "Hello!"))
check("crew", lambda: has(crew("SAY<<Thought: I now can give a great answer\nFinal Answer: done>>"), "done"))
check("tools", lambda: has(crew("WEATHER", [weather]), SAID))
done()
