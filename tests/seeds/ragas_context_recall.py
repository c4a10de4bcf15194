import asyncio
import os

from openai import AsyncOpenAI

from airjudge.compat.ragas import ContextRecall, llm_factory

client = AsyncOpenAI(api_key=os.environ["OPENAI_API_KEY"], base_url=os.environ["OPENAI_BASE_URL"])
llm = llm_factory("gpt-4o-mini", client=client, max_tokens=4096)
scorer = ContextRecall(llm=llm)


async def main() -> None:
    result = await scorer.ascore(
        user_input="埃菲尔铁塔位于哪里？",
        retrieved_contexts=["巴黎是法国的首都。", "埃菲尔铁塔位于巴黎。"],
        reference="埃菲尔铁塔位于巴黎。他的名字叫汤姆。",
    )
    print(result.value)


asyncio.run(main())
