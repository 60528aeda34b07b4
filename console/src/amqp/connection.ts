/** One AMQP connection over one WebSocket: a dynamic receiver for the answers, and senders for the requests. */

import "./node/globals";

import rhea, { type Connection, type EventContext, type Message, type Receiver, type Sender } from "rhea";

import type { Value } from "../model/types";
import { ConnectError, ManagementError } from "./errors";
import { mechanismsFor, noting, type Credentials } from "./mechanisms";
import { Slots } from "./slots";
import { joiningSocket } from "./socket";
import { fromValue, toValue } from "./values";

/** Requests under way at once, and how long each may take before it counts as unanswered. */
const MAX_UNDER_WAY = 10;
const REQUEST_TIMEOUT_MS = 5_000;
/** From the first byte to the receiver's address. */
const OPEN_TIMEOUT_MS = 15_000;
/** The router closes a connection over which nothing comes for twice this long; rhea keeps it alive. */
const IDLE_TIMEOUT_MS = 16_000;
/** Answers that the router may send before the console has read them. */
const CREDIT = 100;

/** What an application property of a request may be. */
export type Properties = Readonly<Record<string, Value | undefined>>;

export interface Answer {
  readonly status: number;
  readonly description: string;
  readonly body: Value;
}

interface Pending {
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: ManagementError) => void;
  readonly timer: ReturnType<typeof setTimeout>;
}

/** An open connection to a router. It ends once, by close() or by a loss that `onLost` is called for. */
export class AmqpConnection {
  /** The container id of this connection, by which the router's table of connections shows it. */
  readonly container = `trouter-console-${rhea.generate_uuid()}`;
  /** The mechanisms that the listener offered, as far as they were looked at. */
  readonly offered = new Set<string>();
  /** Called once when an open connection is lost, with why. */
  onLost: (why: string) => void = () => undefined;

  private readonly slots = new Slots(MAX_UNDER_WAY);
  private readonly pending = new Map<string, Pending>();
  private readonly senders = new Map<string, Sender>();
  private amqp: Connection | undefined;
  private receiver: Receiver | undefined;
  private anonymous = false;
  private ended = false;
  private lastId = 0;

  /** The address of the receiver, such as amqp:/_topo/0/ID/temp.xyz; "" before the connection is open. */
  get replyTo(): string {
    return this.receiver?.source.address ?? "";
  }

  /** Connect to `url`, log in and ask for the virtual host `host`; ConnectError. */
  async open(url: string, host: string, credentials: Credentials): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      const fail = (reason: ConnectError["reason"], why: string): void => {
        clearTimeout(timer);
        this.end(why);
        reject(new ConnectError(reason, why, [...this.offered]));
      };
      const timer = setTimeout(() => fail("unreachable", "The router does not answer."), OPEN_TIMEOUT_MS);
      this.amqp = this.connect(url, host, credentials);
      this.watch(this.amqp, fail);
      this.amqp.once("receiver_open", () => {
        clearTimeout(timer);
        resolve();
      });
    });
    this.amqp?.removeAllListeners("disconnected");
    this.amqp?.on("disconnected", () => this.lose("The connection was cut."));
  }

  private connect(url: string, host: string, credentials: Credentials): Connection {
    // rhea calls it with `new`, which returns what the function returns.
    const dial = rhea.websocket_connect(joiningSocket as unknown as typeof WebSocket) as unknown as (...given: unknown[]) => () => object;
    const options = {
      connection_details: dial(url, ["amqp", "binary"], []),
      container_id: this.container,
      hostname: host,
      sasl_init_hostname: host,
      sasl_mechanisms: noting(mechanismsFor(credentials), this.offered),
      properties: { product: "trouter-console", console_identifier: "trouter console" },
      idle_time_out: IDLE_TIMEOUT_MS,
      reconnect: false,
    };
    return rhea.create_container().connect(options as never);
  }

  private watch(amqp: Connection, fail: (reason: ConnectError["reason"], why: string) => void): void {
    amqp.on("connection_open", () => {
      this.anonymous = [amqp.offered_capabilities ?? []].flat().includes("ANONYMOUS-RELAY");
      this.receiver = amqp.open_receiver({ source: { address: "", dynamic: true }, credit_window: CREDIT });
    });
    amqp.on("message", (context: EventContext) => this.receive(context.message));
    amqp.on("receiver_error", (context: EventContext) => {
      fail("refused", `The router refuses a receiver for its answers: ${described(context.receiver?.error)}`);
    });
    amqp.on("receiver_close", () => this.lose("The router closed the receiver of its answers."));
    amqp.on("connection_error", (context: EventContext) => {
      const error = context.error ?? amqp.error;
      if (this.receiver !== undefined) this.lose(described(error));
      else if (described(error).includes("No suitable mechanism")) {
        fail("no mechanism", "The listener wants another way of logging in.");
      } else if (isUnauthorized(error)) fail("refused", "The router refuses this login.");
      else fail("refused", described(error));
    });
    amqp.on("connection_close", () => this.lose("The router closed the connection."));
    amqp.on("disconnected", () => fail("unreachable", "The router cannot be reached."));
    // Whatever rhea finds wrong with what the peer sent; "disconnected" follows.
    amqp.on("error", () => undefined);
    amqp.on("protocol_error", () => undefined);
  }

  /** Send one request to the node at `to` and return its answer, whatever its status; ManagementError if none comes. */
  async request(to: string, properties: Properties, body: Value): Promise<Answer> {
    await this.slots.take();
    try {
      return await this.ask(to, properties, body);
    } finally {
      this.slots.give();
    }
  }

  private ask(to: string, properties: Properties, body: Value): Promise<Answer> {
    const { amqp } = this;
    if (this.ended || amqp === undefined) return Promise.reject(new ManagementError(0, "not connected"));
    this.lastId += 1;
    const id = String(this.lastId);
    return new Promise<Answer>((resolve, reject) => {
      const timer = setTimeout(() => {
        this.pending.delete(id);
        reject(new ManagementError(0, `no answer within ${REQUEST_TIMEOUT_MS / 1_000} s`));
      }, REQUEST_TIMEOUT_MS);
      this.pending.set(id, { resolve, reject, timer });
      const given = Object.entries(properties).filter(([, value]) => value !== undefined && value !== null);
      const message: Message = {
        to,
        reply_to: this.replyTo,
        correlation_id: id,
        application_properties: Object.fromEntries(given.map(([key, value]) => [key, fromValue(value)])),
        body: fromValue(body),
      };
      this.senderFor(amqp, to).send(message);
    });
  }

  /** One sender for all nodes where the router relays, else one for each node. */
  private senderFor(amqp: Connection, to: string): Sender {
    const target = this.anonymous ? "" : to;
    const open = this.senders.get(target);
    if (open !== undefined) return open;
    const sender = amqp.open_sender({ target: target === "" ? {} : { address: target } });
    this.senders.set(target, sender);
    sender.on("sender_error", () => this.senderRefused(target, sender));
    sender.on("sender_close", () => this.senderRefused(target, sender));
    return sender;
  }

  /** A policy may refuse the anonymous sender and allow one to the node itself. */
  private senderRefused(target: string, sender: Sender): void {
    if (this.senders.get(target) !== sender) return;
    this.senders.delete(target);
    const why = new ManagementError(403, `The router refuses requests to its management node: ${described(sender.error)}`);
    if (target === "") this.anonymous = false;
    for (const id of [...this.pending.keys()]) this.settle(id, (pending) => pending.reject(why));
  }

  private receive(message: Message | undefined): void {
    if (message === undefined) return;
    const properties = (message.application_properties ?? {}) as Record<string, unknown>;
    const status = Number(properties["statusCode"]);
    const description = properties["statusDescription"];
    this.settle(String(message.correlation_id), (pending) =>
      pending.resolve({
        status: Number.isInteger(status) ? status : 0,
        description: typeof description === "string" ? description : "",
        body: toValue(message.body),
      }),
    );
  }

  /** An answer that no request waits for (any longer) is dropped. */
  private settle(id: string, how: (pending: Pending) => void): void {
    const pending = this.pending.get(id);
    if (pending === undefined) return;
    this.pending.delete(id);
    clearTimeout(pending.timer);
    how(pending);
  }

  private lose(why: string): void {
    if (this.ended) return;
    this.end(why);
    this.onLost(why);
  }

  private end(why: string): void {
    this.ended = true;
    for (const id of [...this.pending.keys()]) {
      this.settle(id, (pending) => pending.reject(new ManagementError(0, why)));
    }
    this.amqp?.close();
  }

  /** Close the connection; requests under way are rejected. */
  close(): void {
    if (!this.ended) this.end("The connection was closed.");
  }
}

function described(error: unknown): string {
  if (typeof error !== "object" || error === null) return "no reason given";
  const { description, message, condition } = error as { description?: string; message?: string; condition?: string };
  return description ?? message ?? condition ?? "no reason given";
}

function isUnauthorized(error: unknown): boolean {
  return (error as { condition?: string } | undefined)?.condition === "amqp:unauthorized-access";
}
