/** One AMQP connection over one WebSocket, with a dynamic receiver for the answers and senders for the requests. */

import "./node/globals";

import rhea, { type Connection, type EventContext, type Message, type Receiver, type Sender } from "rhea";

import type { Value } from "../model/types";
import { ConnectError, ManagementError } from "./errors";
import { mechanismsFor, recordLookups, type Credentials } from "./mechanisms";
import { Slots } from "./slots";
import { batchingSocket } from "./socket";
import { fromValue, toValue } from "./values";

/** Requests under way at once; further ones wait. */
const MAX_UNDER_WAY = 10;
/** A request without an answer after this time fails. */
const REQUEST_TIMEOUT_MS = 5_000;
/**
 * The same for a login: each request before it is complete, and the time from the first byte until the router names the receiver's
 * address. A router or browser that is very busy must not send the user back to the login page.
 */
const LOGIN_TIMEOUT_MS = 60_000;
/** The router sends a frame in half of this time; rhea gives the connection up after twice this time without one. */
const IDLE_TIMEOUT_MS = 8_000;
/** Credit of the receiver: answers that the router may send before the console has read them. */
const CREDIT = 100;

/** The application properties of a request; undefined and null ones are not sent. */
export type Properties = Readonly<Record<string, Value | undefined>>;

/** The answer of a management node to one request. */
export interface Answer {
  /** The status code, as in HTTP; 0 if the answer has none. */
  readonly status: number;
  /** The node's text about the status; "" if the answer has none. */
  readonly description: string;
  /** The number of workers that answered as one router; 0 for a router of one process. */
  readonly workers: number;
  /** The workers whose part the answer lacks, and why; "" if it lacks none. */
  readonly missing: string;
  readonly body: Value;
}

interface Pending {
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: ManagementError) => void;
  readonly timer: ReturnType<typeof setTimeout>;
}

/** A connection to a router. It ends once: by close(), or by a loss, which `onLost` reports. */
export class AmqpConnection {
  /** The container id of this connection; the router's table of connections has it. */
  readonly container = `trouter-console-${rhea.generate_uuid()}`;
  /** The SASL mechanisms that rhea looked up: those that the listener offered. */
  readonly offered = new Set<string>();
  /** Called once when an open connection is lost, with the reason. */
  onLost: (reason: string) => void = () => undefined;

  private readonly slots = new Slots(MAX_UNDER_WAY);
  private readonly pending = new Map<string, Pending>();
  private readonly senders = new Map<string, Sender>();
  private amqp: Connection | undefined;
  private receiver: Receiver | undefined;
  private anonymous = false;
  private ended = false;
  private requestTimeoutMs = LOGIN_TIMEOUT_MS;
  private lastId = 0;

  /** The address of the receiver, such as amqp:/_topo/0/ID/temp.xyz; "" before the connection is open. */
  get replyTo(): string {
    return this.receiver?.source.address ?? "";
  }

  /** Connect to `url` and log in to the virtual host `host`; throw ConnectError if that fails. */
  async open(url: string, host: string, credentials: Credentials): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      const fail = (reason: ConnectError["reason"], description: string): void => {
        clearTimeout(timer);
        this.end(description);
        reject(new ConnectError(reason, description, [...this.offered]));
      };
      const timer = setTimeout(() => fail("unreachable", "The router does not answer."), LOGIN_TIMEOUT_MS);
      this.amqp = this.connect(url, host, credentials);
      this.addListeners(this.amqp, fail);
      this.amqp.once("receiver_open", () => {
        clearTimeout(timer);
        resolve();
      });
    });
    this.amqp?.removeAllListeners("disconnected");
    this.amqp?.on("disconnected", () => this.endLost("The connection was cut."));
  }

  private connect(url: string, host: string, credentials: Credentials): Connection {
    // rhea calls the function with `new`, which returns the function's result.
    const connectionDetails = rhea.websocket_connect(batchingSocket as unknown as typeof WebSocket) as unknown as (...parameters: unknown[]) => () => object;
    const options = {
      connection_details: connectionDetails(url, ["amqp", "binary"], []),
      container_id: this.container,
      hostname: host,
      sasl_init_hostname: host,
      sasl_mechanisms: recordLookups(mechanismsFor(credentials), this.offered),
      properties: { product: "trouter-console", console_identifier: "trouter console" },
      idle_time_out: IDLE_TIMEOUT_MS,
      reconnect: false,
    };
    return rhea.create_container().connect(options as never);
  }

  private addListeners(amqp: Connection, fail: (reason: ConnectError["reason"], description: string) => void): void {
    amqp.on("connection_open", () => {
      this.anonymous = [amqp.offered_capabilities ?? []].flat().includes("ANONYMOUS-RELAY");
      this.receiver = amqp.open_receiver({ source: { address: "", dynamic: true }, credit_window: CREDIT });
    });
    amqp.on("message", (context: EventContext) => this.receive(context.message));
    amqp.on("receiver_error", (context: EventContext) => {
      fail("refused", `The router refuses a receiver for its answers: ${errorText(context.receiver?.error)}`);
    });
    amqp.on("receiver_close", () => this.endLost("The router closed the receiver of its answers."));
    amqp.on("connection_error", (context: EventContext) => {
      const error = context.error ?? amqp.error;
      if (this.receiver !== undefined) this.endLost(errorText(error));
      else if (errorText(error).includes("No suitable mechanism")) {
        fail("no mechanism", "The listener does not accept this kind of login.");
      } else if (isUnauthorized(error)) fail("refused", "The router refuses this login.");
      else fail("refused", errorText(error));
    });
    amqp.on("connection_close", () => this.endLost("The router closed the connection."));
    amqp.on("disconnected", () => fail("unreachable", "The router cannot be reached."));
    // rhea reports a fault of the peer here; "disconnected" follows.
    amqp.on("error", () => undefined);
    amqp.on("protocol_error", () => undefined);
  }

  /** From now on a request without an answer fails soon: the login is complete. */
  completeLogin(): void {
    this.requestTimeoutMs = REQUEST_TIMEOUT_MS;
  }

  /** Send a request to the node at `to` and return its answer with any status; throw ManagementError if no answer comes. */
  async request(to: string, properties: Properties, body: Value): Promise<Answer> {
    await this.slots.acquire();
    try {
      return await this.sendRequest(to, properties, body);
    } finally {
      this.slots.release();
    }
  }

  private sendRequest(to: string, properties: Properties, body: Value): Promise<Answer> {
    const { amqp } = this;
    if (this.ended || amqp === undefined) return Promise.reject(new ManagementError(0, "not connected"));
    this.lastId += 1;
    const id = String(this.lastId);
    const limitMs = this.requestTimeoutMs;
    return new Promise<Answer>((resolve, reject) => {
      const timer = setTimeout(() => {
        this.pending.delete(id);
        reject(new ManagementError(0, `no answer within ${limitMs / 1_000} s`));
      }, limitMs);
      this.pending.set(id, { resolve, reject, timer });
      const present = Object.entries(properties).filter(([, value]) => value !== undefined && value !== null);
      const message: Message = {
        to,
        reply_to: this.replyTo,
        correlation_id: id,
        application_properties: Object.fromEntries(present.map(([key, value]) => [key, fromValue(value)])),
        body: fromValue(body),
      };
      this.senderFor(amqp, to).send(message);
    });
  }

  /** Return the sender for the node at `to`: one for all nodes if the router relays, else one for each node. */
  private senderFor(amqp: Connection, to: string): Sender {
    const target = this.anonymous ? "" : to;
    const open = this.senders.get(target);
    if (open !== undefined) return open;
    const sender = amqp.open_sender({ target: target === "" ? {} : { address: target } });
    this.senders.set(target, sender);
    sender.on("sender_error", () => this.failSender(target, sender));
    sender.on("sender_close", () => this.failSender(target, sender));
    return sender;
  }

  /** Fail all requests under way; if the policy refused the anonymous sender, later requests use one sender for each node. */
  private failSender(target: string, sender: Sender): void {
    if (this.senders.get(target) !== sender) return;
    this.senders.delete(target);
    const refusal = new ManagementError(403, `The router refuses requests to its management node: ${errorText(sender.error)}`);
    if (target === "") this.anonymous = false;
    for (const id of [...this.pending.keys()]) this.complete(id, (pending) => pending.reject(refusal));
  }

  private receive(message: Message | undefined): void {
    if (message === undefined) return;
    const properties = (message.application_properties ?? {}) as Record<string, unknown>;
    const status = Number(properties["statusCode"]);
    const description = properties["statusDescription"];
    const workers = Number(properties["workers"]);
    const missing = properties["missing"];
    this.complete(String(message.correlation_id), (pending) =>
      pending.resolve({
        status: Number.isInteger(status) ? status : 0,
        description: typeof description === "string" ? description : "",
        workers: Number.isInteger(workers) ? workers : 0,
        missing: typeof missing === "string" ? missing : "",
        body: toValue(message.body),
      }),
    );
  }

  /** End the pending request `id`; drop the answer if no request waits for it. */
  private complete(id: string, finish: (pending: Pending) => void): void {
    const pending = this.pending.get(id);
    if (pending === undefined) return;
    this.pending.delete(id);
    clearTimeout(pending.timer);
    finish(pending);
  }

  private endLost(reason: string): void {
    if (this.ended) return;
    this.end(reason);
    this.onLost(reason);
  }

  private end(reason: string): void {
    this.ended = true;
    for (const id of [...this.pending.keys()]) {
      this.complete(id, (pending) => pending.reject(new ManagementError(0, reason)));
    }
    this.amqp?.close();
  }

  /** Close the connection; requests under way are rejected. */
  close(): void {
    if (!this.ended) this.end("The connection was closed.");
  }
}

function errorText(error: unknown): string {
  if (typeof error !== "object" || error === null) return "no reason given";
  const { description, message, condition } = error as { description?: string; message?: string; condition?: string };
  return description ?? message ?? condition ?? "no reason given";
}

function isUnauthorized(error: unknown): boolean {
  return (error as { condition?: string } | undefined)?.condition === "amqp:unauthorized-access";
}
