/* A runtime with functions of the same names as ours, which do something else. */
int nrt_sys_trace_start(void *config);
int nrt_sys_trace_stop(void);
int nrt_sys_trace_fetch_events(char **buffer, void *size, void *options);
unsigned long long nrt_sys_trace_new_event(int type, int phase, unsigned nc, unsigned long long id, const void *data);

int nrt_sys_trace_start(void *config) { return config ? 1001 : 1000; }
int nrt_sys_trace_stop(void) { return 1002; }
int nrt_sys_trace_fetch_events(char **buffer, void *size, void *options) { return buffer && size && options ? 1 : 1003; }
unsigned long long nrt_sys_trace_new_event(int type, int phase, unsigned nc, unsigned long long id, const void *data) {
    return data ? 1 : (unsigned long long)(type + phase) + nc + id + 5000;
}
