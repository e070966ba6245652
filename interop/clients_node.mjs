// Tests whether @google-cloud/storage works with the GCS server in STORAGE_EMULATOR_HOST. Creates the bucket if it is missing.
import {randomBytes} from 'node:crypto';
import {Storage} from '@google-cloud/storage';

const [bucketName] = process.argv.slice(2);
const storage = new Storage({projectId: 'interop'});
const bucket = storage.bucket(bucketName);
const prefix = `node-${process.pid}/`;
let failures = 0;
const check = (name, condition, detail = '') => {
  failures += condition ? 0 : 1;
  console.log(`${condition ? 'ok  ' : 'FAIL'} node: ${name}${condition ? '' : ` - ${detail}`}`);
};

const [exists] = await bucket.exists();
if (!exists) await bucket.create();
check('the bucket is listed', (await storage.getBuckets())[0].some(found => found.name === bucketName));
const small = bucket.file(prefix + 'a b/ä');
await small.save('hello', {metadata: {contentType: 'text/plain', metadata: {colour: 'red'}}, resumable: false});
check('a small object is read back, and its hashes are verified', (await small.download())[0].toString() === 'hello');
const [metadata] = await small.getMetadata();
check('its metadata is read back', metadata.metadata.colour === 'red', JSON.stringify(metadata));
const data = randomBytes((20 << 20) + 1);
const large = bucket.file(prefix + 'large');
await large.save(data, {resumable: true, chunkSize: 8 << 20});
check('20 MiB are uploaded in a session and downloaded', (await large.download())[0].equals(data));
await small.copy(bucket.file(prefix + 'copied'));
await bucket.file(prefix + 'copied').move(bucket.file(prefix + 'moved'));
const names = (await bucket.getFiles({prefix}))[0].map(file => file.name);
check('objects are copied, moved and listed', names.join() === [prefix + 'a b/ä', prefix + 'large', prefix + 'moved'].join(), names);
await bucket.deleteFiles({prefix});
check('all objects are removed', (await bucket.getFiles({prefix}))[0].length === 0);
process.exit(failures ? 1 : 0);
