import com.fasterxml.jackson.annotation.JsonAutoDetect.Visibility;
import com.fasterxml.jackson.annotation.JsonInclude.Include;
import com.fasterxml.jackson.annotation.PropertyAccessor;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;

/**
 * A worker process with Curator: it takes a load from each line of its standard input and tells its result in a line of its standard
 * output, both in JSON. It ends with its standard input. Its argument says whether the users of a session "share" a lock object, or
 * have one "each".
 */
public final class Worker {
    private static final ObjectMapper JSON =
            new ObjectMapper().setVisibility(PropertyAccessor.FIELD, Visibility.ANY).setSerializationInclusion(Include.NON_NULL);

    private Worker() {}

    public static void main(String[] args) throws IOException {
        boolean shared = args[0].equals("share");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            System.out.println(JSON.writeValueAsString(run(JSON.readValue(line, Load.class), shared)));
            System.out.flush();
        }
        Runtime.getRuntime().halt(0); // threads may wait for locks
    }

    private static Result run(Load load, boolean shared) {
        try (Team team = new Team(load, shared)) {
            return new Shapes(team).run();
        } catch (Exception e) {
            e.printStackTrace();
            Result r = new Result();
            r.fault = e.toString();
            return r;
        }
    }
}
