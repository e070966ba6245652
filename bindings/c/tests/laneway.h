/* The functions of bindings/c/src/exports.rs, whose comments describe them. */
#include <stddef.h>
#include <stdint.h>

typedef struct laneway_buffer_t laneway_buffer_t;

uint64_t laneway_listener(void);
laneway_buffer_t *laneway_buffer(void);
void laneway_free(laneway_buffer_t *buffer);
void laneway_number(laneway_buffer_t *buffer, uint64_t number);
void laneway_flag(laneway_buffer_t *buffer, int flag);
void laneway_text(laneway_buffer_t *buffer, const char *text);
const uint8_t *laneway_bytes(const laneway_buffer_t *buffer, size_t *length);
uint64_t laneway_open(const laneway_buffer_t *pairs, const char *url);
uint64_t laneway_job(uint64_t bucket, const laneway_buffer_t *request);
laneway_buffer_t *laneway_call(uint64_t listener, int verb, uint64_t of, const laneway_buffer_t *arguments,
                               uint8_t *memory, size_t length);
