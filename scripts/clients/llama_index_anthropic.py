"""Anthropic: chat and stream, under a name of Anthropic's, since the class refuses others"""
from trying import *
from llama_index.core.llms import ChatMessage
from llama_index.llms.anthropic import Anthropic

llm = Anthropic(model="claude-sonnet-4-0", base_url=URL, api_key=KEY, max_tokens=900, max_retries=0)
check("chat", lambda: has(llm.chat([ChatMessage(role="user", content="hi")]).message.content, "Hello!"))
check("stream", lambda: has("".join(c.delta or "" for c in llm.stream_chat([ChatMessage(role="user", content="hi")])), "Hello!"))
done()
