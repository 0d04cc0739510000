"""LangChain's client of OpenAI's API."""

import os

from langchain_openai import ChatOpenAI
from openai import BadRequestError, InternalServerError

OWN = {
    "base_url": f"{os.environ['ADDRESS']}/v1",
    "api_key": os.environ["TOKEN"],
    "max_retries": 0,
}
brief, human = (ChatOpenAI(model=name, **OWN) for name in ("brief", "human"))
assert brief.invoke("Ada").text == "a text"
assert "".join(each.text for each in brief.stream("Ada")) == "a text"

asked = human.invoke("Send it.")
assert asked.text.startswith("May this be sent?")
assert human.invoke([("user", "Send it."), asked, ("user", "yes")]).text == "Sent."
asked = human.invoke("Send it.")
run_id = asked.response_metadata["id"]
bound = human.bind(extra_body={"metadata": {"run_id": run_id}})
assert bound.invoke("no").text == "Not sent."

responses = ChatOpenAI(model="human", use_responses_api=True, **OWN)
asked = responses.invoke("Send it.")
assert asked.text.startswith("May this be sent?")
named = {"previous_response_id": asked.response_metadata["id"]}
assert responses.invoke("yes", **named).text == "Sent."


def is_refused(call, kind):
    try:
        call()
    except kind:
        return True
    return False


def pay(amount: int) -> str:
    """Pay."""
    return str(amount)


assert is_refused(lambda: brief.bind_tools([pay]).invoke("x"), BadRequestError)
assert is_refused(
    lambda: ChatOpenAI(model="brief", temperature=0, **OWN).invoke("x"), BadRequestError
)
assert is_refused(lambda: ChatOpenAI(model="broken", **OWN).invoke("x"), InternalServerError)
