/** What a worker measured: internal/load/load.go says what each field means. Times are in nanoseconds. */
final class Result {
    public long ops;
    public long took;
    public Long median;
    public Double requests;
    public Long clientCPU;
    public Long serverCPU;
    public Double heap;
    public Double threads;
    public Double watches;
    public Boolean unsupported;
    public String fault;
}
