/** A network of three routers and an edge, with traffic. */

import { startTraffic, type Traffic } from "./clients";
import { amqpListener, consoleListener, PATIENCE_S, section, startRouter, type RunningRouter } from "./router";

export interface Network {
  readonly a: RunningRouter;
  readonly b: RunningRouter;
  /** Router C, which dials the others and is dialled by none, so that a test may kill and restart it. */
  c: RunningRouter;
  readonly edge: RunningRouter;
  readonly traffic: Traffic;
  /** The URL at which router A serves the console, "http://127.0.0.1:PORT/". */
  readonly url: string;
  /** Restart router C after a test has killed it. */
  readonly restartC: () => Promise<void>;
  readonly stop: () => Promise<void>;
}

const interior = (id: string): string => section("router", { id, mode: "interior", helloMaxAgeSeconds: PATIENCE_S });
const between = (port: number): string => section("connector", { host: "127.0.0.1", port, role: "inter-router" });

/**
 * Start routers A, B and C, each connected to both others, and edge router E at B. Listener 0 of each is for clients; A and E
 * have a further one for the console. Clients send `orders` from A to C, `news` (multicast) from B to A and C, and `bids` from
 * E to B; `lonely` has a receiver without credit.
 */
export async function startNetwork(): Promise<Network> {
  const started: RunningRouter[] = [];
  const start = async (configuration: string): Promise<RunningRouter> => {
    const router = await startRouter(configuration);
    started.push(router);
    return router;
  };
  const stop = async (): Promise<void> => {
    await Promise.all(started.map((router) => router.stop()));
  };
  try {
    const addresses = section("address", { prefix: "news", distribution: "multicast" });
    const a = await start(
      interior("A") + amqpListener() + consoleListener() + amqpListener({ role: "inter-router" }) + addresses,
    );
    const b = await start(
      interior("B") +
        amqpListener() +
        amqpListener({ role: "inter-router" }) +
        amqpListener({ role: "edge" }) +
        between(a.port(2)) +
        addresses,
    );
    const configurationOfC = interior("C") + amqpListener() + between(a.port(2)) + between(b.port(1)) + addresses;
    const c = await start(configurationOfC);
    const uplink = section("connector", { name: "uplink", host: "127.0.0.1", port: b.port(2), role: "edge" });
    const edge = await start(section("router", { id: "E", mode: "edge" }) + amqpListener() + consoleListener() + uplink);
    const traffic = await startTraffic([
      { address: "orders", from: a.port(), to: [c.port()] },
      { address: "news", from: b.port(), to: [a.port(), c.port()] },
      { address: "bids", from: edge.port(), to: [b.port()] },
      { address: "lonely", from: a.port(), to: [b.port()], isBlocked: true },
    ]);
    const network: Network = {
      a,
      b,
      c,
      edge,
      traffic,
      url: `http://127.0.0.1:${a.port(1)}/`,
      restartC: async () => {
        network.c = await start(configurationOfC);
      },
      stop: async () => {
        traffic.stop();
        await stop();
      },
    };
    return network;
  } catch (error) {
    await stop();
    throw error;
  }
}
