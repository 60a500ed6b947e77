#!/usr/bin/env python3
"""Makes golden checkpoints: tiny models with random weights and the logits that transformers computes from them.

    make_goldens.py OUT            the committed set (testdata/goldens)
    make_goldens.py OUT --switches many more, one configuration switch or another spelling each
    make_goldens.py OUT NAME...    some of either

testdata/ggufs/NAME.gguf is goldens/NAME as llama.cpp's convert_hf_to_gguf.py writes it (bf16), with a made-up vocabulary.

Needs torch and transformers 5.17. Each folder gets config.json, model.safetensors (bf16) and golden.safetensors with
input_ids int32 [48] and logits float32 [48, vocab], computed in float32 by the eager implementation from the weights as
saved. Weights are drawn so that every part of a model moves the logits: matrices N(0, 1/fan_in), norms around their
neutral value, biases, sinks and router biases away from zero.
"""
import json
import math
import os
import sys

import torch
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM

BASE = dict(
    vocab_size=112, hidden_size=48, intermediate_size=80, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2,
    max_position_embeddings=256, pad_token_id=0, bos_token_id=1, eos_token_id=2, attn_implementation="eager",
)
LLAMA3 = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=64, rope_theta=10000.0)
YARN = dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=32, rope_theta=10000.0)
EXPERTS = dict(num_experts_per_tok=3, moe_intermediate_size=24)
DELTA = dict(
    head_dim=16, linear_key_head_dim=8, linear_value_head_dim=8, linear_num_key_heads=2, linear_num_value_heads=4,
    layer_types=["linear_attention", "full_attention", "linear_attention"],
)
MLA = dict(kv_lora_rank=20, q_lora_rank=28, qk_nope_head_dim=12, qk_rope_head_dim=8, v_head_dim=12, num_key_value_heads=4, first_k_dense_replace=1)
SMALL = dict(vocab_size=64, hidden_size=24, intermediate_size=40, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1)
SLIDING = ["sliding_attention", "full_attention", "sliding_attention"]

# name: (model_type, configuration)
COMMITTED = {
    "llama": ("llama", dict(rope_parameters=LLAMA3)),
    "llama_tied_headdim": ("llama", dict(head_dim=20, num_key_value_heads=1, tie_word_embeddings=True, attention_bias=True, mlp_bias=True)),
    "mistral": ("mistral", dict(head_dim=16, sliding_window=10)),
    "ministral3": ("ministral3", dict(head_dim=16, rope_parameters=dict(
        rope_type="yarn", factor=16.0, original_max_position_embeddings=16, rope_theta=1e6, mscale=1.0, mscale_all_dim=1.0,
        beta_fast=32.0, beta_slow=1.0, llama_4_scaling_beta=0.1))),
    "mixtral": ("mixtral", dict(num_local_experts=4, num_experts_per_tok=2, intermediate_size=40)),
    "qwen2": ("qwen2", dict(tie_word_embeddings=True, use_sliding_window=True, sliding_window=12, max_window_layers=1)),
    "qwen2_yarn": ("qwen2", dict(rope_parameters=YARN)),
    "qwen2_moe": ("qwen2_moe", dict(EXPERTS, num_experts=6, shared_expert_intermediate_size=40)),
    "qwen3": ("qwen3", dict(head_dim=16, tie_word_embeddings=True)),
    "qwen3_moe": ("qwen3_moe", dict(EXPERTS, num_experts=6, head_dim=16, norm_topk_prob=True, mlp_only_layers=[1])),
    "qwen3_next": ("qwen3_next", dict(EXPERTS, **DELTA, num_experts=6, shared_expert_intermediate_size=24)),
    "qwen3_5": ("qwen3_5_text", dict(DELTA)),
    "qwen3_5_moe": ("qwen3_5_moe_text", dict(EXPERTS, **DELTA, num_experts=6, shared_expert_intermediate_size=24)),
    "gemma": ("gemma", dict(head_dim=16)),
    "gemma2": ("gemma2", dict(head_dim=16, query_pre_attn_scalar=16, sliding_window=10)),
    "gemma3": ("gemma3_text", dict(head_dim=16, query_pre_attn_scalar=24, sliding_window=10, layer_types=SLIDING, rope_parameters=dict(
        full_attention=dict(rope_type="linear", factor=8.0, rope_theta=1e6), sliding_attention=dict(rope_type="default", rope_theta=1e4)))),
    "phi3": ("phi3", dict(sliding_window=20, rope_parameters=dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.5))),
    "phi3_longrope": ("phi3", dict(original_max_position_embeddings=32, rope_parameters=dict(
        rope_type="longrope", rope_theta=10000.0, partial_rotary_factor=1.0, original_max_position_embeddings=32,
        short_factor=[1.0, 1.1, 1.2, 1.3, 1.4, 1.5], long_factor=[1.0, 1.4, 1.9, 2.3, 2.8, 3.3]))),
    "olmo2": ("olmo2", {}),
    "olmoe": ("olmoe", dict(num_experts=6, num_experts_per_tok=3, intermediate_size=24, clip_qkv=1.5)),
    "smollm3": ("smollm3", dict(num_hidden_layers=4)),
    "granite": ("granite", dict(attention_multiplier=0.08, embedding_multiplier=12.0, logits_scaling=8.0, residual_multiplier=0.22)),
    "gpt_oss": ("gpt_oss", dict(
        hidden_size=64, intermediate_size=32, head_dim=16, num_local_experts=4, num_experts_per_tok=2, sliding_window=10,
        rope_parameters=dict(rope_type="yarn", factor=8.0, original_max_position_embeddings=32, rope_theta=150000.0, truncate=False,
                             beta_fast=32.0, beta_slow=1.0))),
    "lfm2": ("lfm2", dict(block_multiple_of=16, layer_types=["conv", "full_attention", "conv"])),
    "lfm2_moe": ("lfm2_moe", dict(EXPERTS, num_experts=6, num_dense_layers=1, layer_types=["conv", "full_attention", "conv"])),
    "deepseek_v2": ("deepseek_v2", dict(EXPERTS, **MLA, n_routed_experts=6, n_shared_experts=1, topk_method="group_limited_greedy", n_group=3, topk_group=2)),
    "deepseek_v2_lite": ("deepseek_v2", dict(EXPERTS, **dict(MLA, q_lora_rank=None), n_routed_experts=6, n_shared_experts=2, rope_parameters=dict(
        YARN, mscale=0.707, mscale_all_dim=0.707, beta_fast=32.0, beta_slow=1.0))),
    "deepseek_v3": ("deepseek_v3", dict(EXPERTS, **MLA, n_routed_experts=6, n_shared_experts=1, n_group=3, topk_group=2, num_mtp_layers=0)),
    "llama_dynamic_grown": ("llama", dict(SMALL, max_position_embeddings=32, rope_parameters=dict(rope_type="dynamic", factor=3.0, rope_theta=1e4))),
    "phi3_odd": ("phi3", dict(SMALL, rope_parameters=dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.75))),
}

SWITCHES = {
    "llama_kv1": ("llama", dict(num_key_value_heads=1)),
    "llama_mha_gelu": ("llama", dict(num_key_value_heads=4, hidden_act="gelu")),
    "llama_relu2": ("llama", dict(hidden_act="relu2")),
    "llama_linear": ("llama", dict(rope_parameters=dict(rope_type="linear", factor=3.0, rope_theta=5e5))),
    "llama_dynamic": ("llama", dict(rope_parameters=dict(rope_type="dynamic", factor=3.0, rope_theta=1e4))),
    "llama_yarn_attention_factor": ("llama", dict(rope_parameters=dict(YARN, attention_factor=1.3, beta_fast=16.0, beta_slow=2.0))),
    "llama_yarn_untruncated": ("llama", dict(rope_parameters=dict(YARN, truncate=False))),
    "llama_yarn_mscale": ("llama", dict(rope_parameters=dict(YARN, mscale=1.2, mscale_all_dim=0.8))),
    "llama_longrope": ("llama", dict(rope_parameters=dict(
        rope_type="longrope", rope_theta=1e4, original_max_position_embeddings=32, short_factor=[1.0] * 6, long_factor=[1.5] * 6, factor=4.0))),
    "llama_bias": ("llama", dict(attention_bias=True)),
    "llama_mlp_bias": ("llama", dict(mlp_bias=True)),
    "llama_eps": ("llama", dict(rms_norm_eps=1e-2)),
    "mistral_full": ("mistral", dict(sliding_window=None, head_dim=8)),
    "mistral_tied": ("mistral", dict(tie_word_embeddings=True, sliding_window=1)),
    "ministral3_window": ("ministral3", dict(head_dim=12, sliding_window=9)),
    "mixtral_window": ("mixtral", dict(num_local_experts=5, num_experts_per_tok=3, sliding_window=7, head_dim=20)),
    "mixtral_one": ("mixtral", dict(num_local_experts=4, num_experts_per_tok=1)),
    "qwen2_layer_types": ("qwen2", dict(use_sliding_window=True, sliding_window=9, layer_types=SLIDING)),
    "qwen2_window_off": ("qwen2", dict(use_sliding_window=False, sliding_window=9)),
    "qwen2_moe_norm": ("qwen2_moe", dict(EXPERTS, num_experts=6, shared_expert_intermediate_size=40, norm_topk_prob=True, qkv_bias=False)),
    "qwen2_moe_sparse": ("qwen2_moe", dict(EXPERTS, num_experts=6, shared_expert_intermediate_size=40, decoder_sparse_step=2)),
    "qwen2_moe_mlp_only": ("qwen2_moe", dict(EXPERTS, num_experts=6, shared_expert_intermediate_size=40, mlp_only_layers=[0, 2])),
    "qwen2_moe_window": ("qwen2_moe", dict(EXPERTS, num_experts=6, shared_expert_intermediate_size=40, use_sliding_window=True, sliding_window=8)),
    "qwen3_bias": ("qwen3", dict(head_dim=16, attention_bias=True)),
    "qwen3_window": ("qwen3", dict(head_dim=16, use_sliding_window=True, sliding_window=8, max_window_layers=2)),
    "qwen3_yarn": ("qwen3", dict(head_dim=16, rope_parameters=YARN)),
    "qwen3_moe_raw": ("qwen3_moe", dict(EXPERTS, num_experts=6, head_dim=16, norm_topk_prob=False, attention_bias=True)),
    "qwen3_moe_sparse": ("qwen3_moe", dict(EXPERTS, num_experts=6, head_dim=16, decoder_sparse_step=2)),
    "qwen3_moe_window": ("qwen3_moe", dict(EXPERTS, num_experts=6, head_dim=16, use_sliding_window=True, sliding_window=8)),
    "qwen3_next_dense": ("qwen3_next", dict(EXPERTS, **DELTA, num_experts=6, shared_expert_intermediate_size=24, mlp_only_layers=[1], norm_topk_prob=False)),
    "qwen3_next_bias": ("qwen3_next", dict(EXPERTS, **dict(DELTA, linear_value_head_dim=12, linear_num_value_heads=6), num_experts=6,
                                           shared_expert_intermediate_size=24, attention_bias=True, decoder_sparse_step=2)),
    "qwen3_next_partial": ("qwen3_next", dict(EXPERTS, **DELTA, num_experts=6, shared_expert_intermediate_size=24, rope_parameters=dict(
        rope_type="default", rope_theta=1e6, partial_rotary_factor=0.5))),
    "qwen3_5_square": ("qwen3_5_text", dict(DELTA, linear_num_value_heads=2, tie_word_embeddings=True, linear_conv_kernel_dim=3)),
    "qwen3_5_bias": ("qwen3_5_text", dict(DELTA, attention_bias=True, rope_parameters=dict(
        rope_type="default", rope_theta=1e6, partial_rotary_factor=0.5, mrope_section=[2, 1, 1], mrope_interleaved=True))),
    "qwen3_5_interval": ("qwen3_5_text", dict({k: v for k, v in DELTA.items() if k != "layer_types"}, num_hidden_layers=5, full_attention_interval=2)),
    "qwen3_5_moe_topk1": ("qwen3_5_moe_text", dict(EXPERTS, **DELTA, num_experts=5, shared_expert_intermediate_size=24) | dict(num_experts_per_tok=1)),
    "gemma_gelu": ("gemma", dict(head_dim=20, num_key_value_heads=1, attention_bias=True)),
    "gemma2_uncapped": ("gemma2", dict(head_dim=16, query_pre_attn_scalar=24, attn_logit_softcapping=None, final_logit_softcapping=None, sliding_window=10, attention_bias=True)),
    "gemma2_caps": ("gemma2", dict(head_dim=16, attn_logit_softcapping=2.0, final_logit_softcapping=3.0, sliding_window=10, layer_types=["full_attention", "sliding_attention", "sliding_attention"])),
    "gemma3_cap": ("gemma3_text", dict(head_dim=16, final_logit_softcapping=4.0, sliding_window=6, num_hidden_layers=7)),
    "gemma3_pattern": ("gemma3_text", dict(head_dim=16, sliding_window=6, sliding_window_pattern=2)),
    "gemma3_bias": ("gemma3_text", dict(head_dim=16, sliding_window=6, attention_bias=True, tie_word_embeddings=False)),
    "phi3_tied": ("phi3", dict(tie_word_embeddings=True, num_key_value_heads=4)),
    "phi3_longrope_factor": ("phi3", dict(original_max_position_embeddings=32, rope_parameters=dict(
        rope_type="longrope", rope_theta=10000.0, partial_rotary_factor=0.5, original_max_position_embeddings=32, attention_factor=1.2,
        short_factor=[1.0, 1.1, 1.2], long_factor=[1.0, 1.4, 1.9]))),
    "olmo2_bias": ("olmo2", dict(attention_bias=True, tie_word_embeddings=True)),
    "olmoe_norm": ("olmoe", dict(num_experts=6, num_experts_per_tok=3, intermediate_size=24, norm_topk_prob=True, attention_bias=True)),
    "smollm3_list": ("smollm3", dict(no_rope_layers=[0, 1, 1], attention_bias=True, mlp_bias=True, tie_word_embeddings=False)),
    "smollm3_window": ("smollm3", dict(no_rope_layers=[0, 1, 0], use_sliding_window=True, sliding_window=7)),
    "granite_bias": ("granite", dict(attention_bias=True, mlp_bias=True, tie_word_embeddings=True, attention_multiplier=0.3)),
    "gpt_oss_nobias": ("gpt_oss", dict(hidden_size=64, intermediate_size=32, head_dim=16, num_local_experts=4, num_experts_per_tok=1, sliding_window=10, attention_bias=False)),
    "gpt_oss_full": ("gpt_oss", dict(hidden_size=64, intermediate_size=32, head_dim=16, num_local_experts=4, num_experts_per_tok=4, sliding_window=10,
                                     layer_types=["full_attention"] * 3, tie_word_embeddings=True)),
    "lfm2_fixed": ("lfm2", dict(block_auto_adjust_ff_dim=False, layer_types=["conv", "full_attention", "conv"], conv_bias=True, conv_L_cache=4, tie_word_embeddings=False)),
    "lfm2_idxs": ("lfm2", dict(full_attn_idxs=[1, 2], block_ffn_dim_multiplier=1.3, block_multiple_of=8)),
    "lfm2_moe_unbiased": ("lfm2_moe", dict(EXPERTS, num_experts=6, num_dense_layers=0, layer_types=["conv", "full_attention", "conv"],
                                           use_expert_bias=False, norm_topk_prob=False, routed_scaling_factor=1.7)),
    "deepseek_v2_scaled": ("deepseek_v2", dict(EXPERTS, **MLA, n_routed_experts=6, n_shared_experts=2, routed_scaling_factor=3.0, attention_bias=True, norm_topk_prob=True)),
    "deepseek_v2_mlp_bias": ("deepseek_v2", dict(EXPERTS, **MLA, n_routed_experts=6, n_shared_experts=2, mlp_bias=True)),
    "deepseek_v2_yarn": ("deepseek_v2", dict(EXPERTS, **MLA, n_routed_experts=6, n_shared_experts=2, rope_parameters=dict(YARN, mscale=1.0, mscale_all_dim=0.6))),
    "deepseek_v3_one_group": ("deepseek_v3", dict(EXPERTS, **MLA, n_routed_experts=6, n_shared_experts=1, n_group=1, topk_group=1, rope_interleave=False)),
    "deepseek_v3_raw": ("deepseek_v3", dict(EXPERTS, **dict(MLA, q_lora_rank=None), n_routed_experts=6, n_shared_experts=2, n_group=3, topk_group=2, norm_topk_prob=False, attention_bias=True)),
    "deepseek_v3_yarn": ("deepseek_v3", dict(EXPERTS, **MLA, n_routed_experts=6, n_shared_experts=1, n_group=3, topk_group=2, rope_parameters=dict(
        YARN, mscale=1.0, mscale_all_dim=1.0, beta_fast=32, beta_slow=1))),
}


# The float32 reference of the chunked delta rule is itself off by more than the tolerance for some draws.
SEEDS = {"qwen3_5": 102}


def redraw(model, gen):
    """Gives every parameter and buffer that is saved values that matter, exact in bf16."""
    for name, p in list(model.named_parameters()) + [(n, b) for n, b in model.named_buffers() if n in model.state_dict()]:
        r = torch.randn(p.shape, generator=gen)
        if name.endswith("A_log"):
            r = torch.log(1 + 7 * torch.rand(p.shape, generator=gen))
        elif "norm" in name and name.endswith("weight"):
            plus = getattr(model.config, "model_type", "").startswith(("gemma", "qwen3_next", "qwen3_5")) and "linear_attn" not in name
            r = (0.0 if plus else 1.0) + 0.2 * r
        elif name.endswith(("bias", "sinks")):
            r = 0.3 * r
        elif p.dim() >= 2:
            fan_in = p.shape[-2] if "gpt_oss" in model.config.model_type and "experts" in name and p.dim() == 3 else p.shape[-1]
            r = r / math.sqrt(fan_in)
            if "q_proj" in name or "k_proj" in name or "router" in name or name.endswith("gate.weight"):
                r = r * 2
        p.data.copy_(r.to(torch.bfloat16).to(p.dtype))


def make(out, name, model_type, overrides, seed):
    torch.manual_seed(seed)
    config = AutoConfig.for_model(model_type, **{**BASE, **overrides})
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32, attn_implementation="eager").eval()
    if hasattr(model, "set_experts_implementation"):
        model.set_experts_implementation("eager")
    gen = torch.Generator().manual_seed(seed)
    redraw(model, gen)
    ids = torch.randint(3, config.vocab_size, (1, 48), generator=gen)
    with torch.no_grad():
        logits = model(ids, use_cache=False).logits[0].float()
    folder = os.path.join(out, name)
    os.makedirs(folder, exist_ok=True)
    save_file({"input_ids": ids[0].to(torch.int32), "logits": logits.contiguous()}, os.path.join(folder, "golden.safetensors"))
    model.to(torch.bfloat16).save_pretrained(folder)
    generation = os.path.join(folder, "generation_config.json")
    if os.path.exists(generation):
        os.remove(generation)
    print(f"{name}: {sum(p.numel() for p in model.parameters())} parameters, logits of deviation {logits.std():.2f}", flush=True)


def main():
    out, rest = sys.argv[1], sys.argv[2:]
    table = {**COMMITTED, **SWITCHES} if rest else COMMITTED
    wanted = list(SWITCHES) if rest == ["--switches"] else rest or list(COMMITTED)
    for name in wanted:
        model_type, overrides = table[name]
        make(out, name, model_type, overrides, seed=SEEDS.get(name, 7 + list(table).index(name)))


if __name__ == "__main__":
    main()
