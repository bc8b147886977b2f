import com.sun.management.OperatingSystemMXBean;
import java.io.IOException;
import java.lang.management.ManagementFactory;

/** Measures the requests and the processor time from its making to its stop. */
final class Meter {
    private final Servers servers;
    private final long requests;
    private final Long serverCPU;
    private final long clientCPU = clientCPU();

    Meter(Servers servers) throws IOException {
        this.servers = servers;
        this.requests = servers.requests();
        this.serverCPU = servers.cpu();
    }

    /** Enters what was measured, the requests for each of its operations. */
    void stop(Result r) throws IOException {
        Meter now = new Meter(servers);
        r.requests = Shapes.each(now.requests - requests, r.ops);
        r.clientCPU = now.clientCPU - clientCPU;
        r.serverCPU = serverCPU == null || now.serverCPU == null ? null : now.serverCPU - serverCPU;
    }

    private static long clientCPU() {
        return ((OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime();
    }
}
