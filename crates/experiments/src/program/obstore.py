# obstore.py ACCOUNT BUCKET up FOLDER PREFIX | down KEY FILE | tree PREFIX FOLDER | list PREFIX '' | clean PREFIX ''
import asyncio, os, sys
import obstore
from obstore.store import GCSStore

PART, AT_ONCE = 16 << 20, 8  # bytes of a part of a large object; parts read at once
account, bucket, job, source, target = sys.argv[1:]
store = GCSStore(bucket, config={"service_account": account}, client_options={"allow_invalid_certificates": "true"})


async def up():
    async def one(name):
        with open(os.path.join(source, name), "rb") as file:
            await obstore.put_async(store, target + name, file.read(), use_multipart=False)

    await asyncio.gather(*map(one, os.listdir(source)))


async def down():
    size = (await obstore.head_async(store, source))["size"]
    turns = asyncio.Semaphore(AT_ONCE)
    with open(target, "wb") as file:

        async def one(start):
            async with turns:
                length = min(PART, size - start)
                part = await obstore.get_range_async(store, source, start=start, length=length)
                await asyncio.to_thread(os.pwrite, file.fileno(), part, start)

        await asyncio.gather(*map(one, range(0, size, PART)))


async def tree():
    async def one(key):
        with open(os.path.join(target, key.removeprefix(source)), "wb") as file:
            async for chunk in (await obstore.get_async(store, key)).stream(1 << 20):
                file.write(chunk)

    await asyncio.gather(*map(one, keys()))


def keys():
    return [entry["path"] for page in obstore.list(store, source) for entry in page]


async def list_keys():
    print("\n".join(keys()))


async def clean():
    await obstore.delete_async(store, keys())


asyncio.run({"up": up, "down": down, "tree": tree, "list": list_keys, "clean": clean}[job]())
