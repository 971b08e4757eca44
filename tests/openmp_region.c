/* Someone else's parallel region, which calls back into Python on each of its threads: for tests/test_process.py. */
#include <omp.h>

int run_in_region(int threads, void (*callback)(int))
{
    int team = 0;
#pragma omp parallel num_threads(threads)
    {
#pragma omp master
        team = omp_get_num_threads();
        callback(omp_get_thread_num());
    }
    return team;
}
