/* A race that tests/stress/threads_sanitizer has to find: a team that counts without a reduction. */
int race(int threads) {
    int counted = 0;
    #pragma omp parallel num_threads(threads) shared(counted)
    for (int i = 0; i < 1000; i++) counted += 1;
    return counted;
}
