"""LocalCompletionsAPI: log-likelihood of token-id prompts by echo and logprobs, generate_until"""
import json
import urllib.request
from trying import *
from lm_eval.api.instance import Instance
from lm_eval.models.openai_completions import LocalCompletionsAPI

lm = LocalCompletionsAPI(base_url=V1 + "/completions", model=MODEL, tokenizer_backend=None, tokenized_requests=True, max_retries=1)


lm.tokenizer, lm.tokenized_requests = object(), True  # the prompts are ids already


def ids(text):
    r = urllib.request.Request(URL + "/tokenize", json.dumps({"content": text}).encode(), {"Content-Type": "application/json"})
    return json.load(urllib.request.urlopen(r))["tokens"]


def likelihood():
    got = lm._loglikelihood_tokens([((" a", "b"), ids("<|im_start|>user\nhi"), ids("Hello!")), (("a", "c"), ids("<|im_start|>user\nhi"), ids("zzz"))], disable_tqdm=True)
    assert len(got) == 2 and all(isinstance(p, float) and p < 0 for p, _ in got), got


def generate():
    text = LocalCompletionsAPI(base_url=V1 + "/completions", model=MODEL, tokenizer_backend=None, tokenized_requests=False, max_retries=1)
    request = Instance(request_type="generate_until", doc={}, arguments=("<|im_start|>user\nCOUNT", {"until": ["4"], "max_gen_toks": 50}), idx=0)
    has(text.generate_until([request], disable_tqdm=True)[0], "1 2 3")


check("log-likelihood", likelihood)
check("generate_until", generate)
done()
