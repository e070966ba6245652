/* Uploads an object from this program's memory, and then a folder with a job: face ENDPOINT BUCKET FOLDER */
#include "laneway.h"
#include <stdio.h>
#include <string.h>

enum { PUT = 4, JOB_EVENTS = 24 }; /* numbers of verbs in bindings/core/src/verbs.rs */
/* Positions in the bytes that laneway_call returns. After the answer's flag, a job has the counts of failures and
   warnings (here 0), and a flag that tells whether it has ended. */
enum { ANSWER = 24, ENDED = 41 };

static laneway_buffer_t *pairs(laneway_buffer_t *to, uint64_t count, const char *texts[]) {
  laneway_number(to, count);
  for (uint64_t at = 0; at < 2 * count; at++) laneway_text(to, texts[at]);
  return to;
}

/* Returns the byte at a position in the bytes of a call's end. For a failed call, prints these bytes to stderr and returns -1. */
static int byte_at(laneway_buffer_t *end, size_t place) {
  size_t length;
  const uint8_t *bytes = laneway_bytes(end, &length);
  if (!bytes[ANSWER]) fwrite(bytes, 1, length, stderr);
  int byte = bytes[ANSWER] && place < length ? bytes[place] : -1;
  laneway_free(end);
  return byte;
}

int main(int count, char **words) {
  if (count != 4) return 2;
  char memory[] = "out of the memory of C";
  const char *settings[] = {"s3_endpoint", words[1], "anonymous", "true", "region", "us-east-1"};
  const char *options[] = {"recursive", "true", "contents", "true", "filters", "- *.tmp", "attributes:content-type", "text/x"};
  uint64_t listener = laneway_listener(), bucket = laneway_open(pairs(laneway_buffer(), 3, settings), words[2]);

  laneway_buffer_t *put = laneway_buffer();
  laneway_text(put, "from-c");
  for (int kind = 0; kind < 3; kind++) pairs(put, 0, NULL); /* no attributes, metadata, tags */
  if (byte_at(laneway_call(listener, PUT, bucket, put, (uint8_t *)memory, strlen(memory)), ANSWER) != 1) return 1;

  laneway_buffer_t *copy = laneway_buffer();
  laneway_text(copy, "copy");
  laneway_number(copy, 1);
  laneway_text(copy, words[3]);
  laneway_flag(copy, 1);
  laneway_text(copy, words[2]);
  pairs(copy, 4, options);
  for (int kind = 0; kind < 3; kind++) pairs(copy, 0, NULL);
  uint64_t job = laneway_job(bucket, copy);
  laneway_buffer_t *none = laneway_buffer();
  int ended = 0;
  while (ended == 0) ended = byte_at(laneway_call(listener, JOB_EVENTS, job, none, NULL, 0), ENDED);
  return ended != 1;
}
