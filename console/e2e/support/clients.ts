/** Clients with traffic: rhea in this process, over TCP. */

import rhea, { type Connection, type EventContext } from "rhea";

export interface Stream {
  readonly address: string;
  /** The port that the sender connects to. */
  readonly from: number;
  /** The ports that receivers connect to, one each. */
  readonly to: readonly number[];
  /** The receivers give one credit and never accept a message. */
  readonly isBlocked?: boolean;
}

export interface Traffic {
  /** Close all connections. */
  readonly stop: () => void;
}

/** Interval at which a sender with credit sends a message. */
const EVERY_MS = 50;

/**
 * Return an open connection to the router that listens on `port`, with these properties in its open frame. It ends with the
 * test's process at the latest.
 */
export async function connectTo(
  port: number,
  containerId: string,
  properties: Readonly<Record<string, string>> = {},
): Promise<Connection> {
  const container = rhea.create_container({ id: containerId });
  const connection = container.connect({ host: "127.0.0.1", port, username: "anonymous", reconnect: false, properties });
  // A test may kill the router, which ends this connection.
  connection.on("disconnected", () => undefined);
  connection.on("error", () => undefined);
  await new Promise<void>((resolve, reject) => {
    connection.once("connection_open", () => resolve());
    connection.once("connection_error", (context: EventContext) => reject(new Error(String(context.error))));
  });
  return connection;
}

/** Start senders and receivers, and return as soon as each receiver has a message. */
export async function startTraffic(streams: readonly Stream[]): Promise<Traffic> {
  const connections: Connection[] = [];
  const timers: ReturnType<typeof setInterval>[] = [];
  const connect = async (port: number, id: string): Promise<Connection> => {
    const connection = await connectTo(port, id);
    connections.push(connection);
    return connection;
  };
  for (const stream of streams) {
    const arrived = stream.to.map(async (port, place) => {
      const connection = await connect(port, `reader-${stream.address}-${place}`);
      const settle = stream.isBlocked !== true;
      const receiver = connection.open_receiver({
        source: { address: stream.address },
        credit_window: settle ? 100 : 0,
        autoaccept: settle,
      });
      if (!settle) receiver.add_credit(1);
      await new Promise<void>((resolve) => receiver.once("message", () => resolve()));
    });
    const sending = (await connect(stream.from, `writer-${stream.address}`)).open_sender({
      target: { address: stream.address },
    });
    let count = 0;
    timers.push(
      setInterval(() => {
        if (!sending.sendable()) return;
        count += 1;
        sending.send({ body: `${stream.address} ${count}` });
      }, EVERY_MS),
    );
    await Promise.all(arrived);
  }
  return {
    stop: () => {
      timers.forEach((timer) => clearInterval(timer));
      connections.forEach((connection) => connection.close());
    },
  };
}
