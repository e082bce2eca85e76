/* signals.c with the library opened after the timer runs. */
#define OPENED 1
#include "signals.c"
