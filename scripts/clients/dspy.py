"""Predict by an OpenAI endpoint, its answer in the adapter's marks"""
from trying import *
import dspy as sdk

lm = sdk.LM("openai/" + MODEL, api_base=V1, api_key=KEY, cache=False, num_retries=0)
sdk.configure(lm=lm, adapter=sdk.ChatAdapter())
check("lm", lambda: has(lm("hi"), "Hello!"))
check("predict", lambda: sdk.Predict("question -> answer")(question="SAY<<[[ ## answer ## ]]\n42\n\n[[ ## completed ## ]]>>").answer == "42")
done()
