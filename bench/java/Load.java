import java.util.List;

/** What a worker is to do: internal/load/load.go says what each field means. Times are in nanoseconds. */
final class Load {
    public String shape;
    public String kind;
    public List<String> servers;
    public List<Integer> pids;
    public String path;
    public int sessions;
    public int users;
    public int paths;
    public int reads;
    public int leases;
    public long patience;
    public long settle;
    public long warmUp;
    public long time;
    public long least;

    /** The path of the nth lock. */
    String path(int n) {
        return paths < 2 ? path : path + "-" + n % paths;
    }
}
