"""The prompts of memories: what is noted of a conversation, and how notes are kept."""

FEAT_DEFINE_PROMPT_EN = """Facts about people, their wishes, plans and decisions."""
FEAT_DEFINE_PROMPT_ZH = """人物的事实、愿望、计划与决定。"""
FACT_RETRIEVAL_PROMPT_EN = """Note what is worth remembering of the conversation below:
[Memory Information].
Answer with a list of texts as JSON, such as ["Ann likes ferns."]; [] if there is nothing.
"""
FACT_RETRIEVAL_PROMPT_ZH = """请从下面的对话中记录值得记住的内容：[记忆信息]。
请以 JSON 列表回答，例如 ["安喜欢蕨类植物。"]；没有则回答 []。
"""
DEFAULT_UPDATE_MEMORY_PROMPT_EN = """Bring the notes up to date with the new facts. Answer with a
list as JSON of {"id": the note's id, "text": its text, "event": "ADD", "UPDATE", "DELETE"
or "NONE"}.
"""
DEFAULT_UPDATE_MEMORY_PROMPT_ZH = """请用新的事实更新已有的记忆。请以 JSON 列表回答，每项为
{"id": 记忆编号, "text": 内容, "event": "ADD"、"UPDATE"、"DELETE" 或 "NONE"}。
"""
TASK_SUMMARY_PROMPT_EN = """Say in a few sentences what these attempts teach for the next one:
"""
TASK_SUMMARY_PROMPT_ZH = """请用几句话总结以下尝试对下一次的启示：
"""
