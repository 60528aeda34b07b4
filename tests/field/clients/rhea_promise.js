'use strict';
// rhea-promise as programs write it.

const { Connection, SenderEvents } = require('rhea-promise');
const { thing, options, report, body, Received, certificates, fail } = require('./common');

async function connect(end, more) {
    const tls = end.tls ? { transport: 'tls', ca: certificates() } : {};
    const connection = new Connection({
        host: end.host, port: end.port, username: 'anonymous', reconnect: false, ...tls, ...more,
    });
    await connection.open();
    return connection;
}

// Resolves to what came, once it is all.
async function receiver(connection, source, more) {
    const received = new Received();
    let complete;
    const whole = new Promise((resolve) => { complete = resolve; });
    const link = await connection.createReceiver({
        source, onError: (context) => fail(context.receiver.error),
        onMessage: (context) => {
            received.add(context.message.body);
            if (received.count === options.count) setImmediate(complete, received);
        },
        ...more,
    });
    return { link, whole };
}

async function sendAll(connection) {
    const sender = await connection.createAwaitableSender({
        target: options.address, onError: (context) => fail(context.sender.error),
    });
    const sent = [];
    for (let number = 0; number < options.count; number++) {
        while (!sender.sendable()) await new Promise((resolve) => sender.once(SenderEvents.sendable, resolve));
        sent.push(sender.send({ body: body(number) }, { timeoutInSeconds: options.deadline_s }));
    }
    await Promise.all(sent);
    return sender;
}

async function exchange() {
    const to = await connect(options.to);
    const { link, whole } = await receiver(to, options.address, { credit_window: options.credit });
    const from = await connect(options.from);
    const sender = await sendAll(from);
    report('done', { ...(await whole).details, accepted: options.count });
    await sender.close();
    await link.close();
    await from.close();
    await to.close();
}

async function request() {
    const to = await connect(options.to);
    const from = await connect(options.from);
    const replies = await to.createSender({ target: {} });
    if (!replies.sendable()) await new Promise((resolve) => replies.once(SenderEvents.sendable, resolve));
    await to.createReceiver({
        source: options.address, onError: fail,
        onMessage: ({ message }) => replies.send({
            to: message.reply_to, correlation_id: message.correlation_id, body: message.body.toUpperCase(),
        }),
    });
    const waiting = new Map();
    const inbox = await from.createReceiver({
        source: { dynamic: true }, onError: fail,
        onMessage: ({ message }) => waiting.get(message.correlation_id)(message.body),
    });
    const sender = await from.createAwaitableSender({ target: options.address });
    if (!sender.sendable()) await new Promise((resolve) => sender.once(SenderEvents.sendable, resolve));
    for (let number = 0; number < options.count; number++) {
        const reply = new Promise((resolve) => waiting.set(number, resolve));
        await sender.send({ reply_to: inbox.address, correlation_id: number, body: 'ping ' + number });
        if (await reply !== 'PING ' + number) fail('another reply');
    }
    report('done', { answered: options.count });
    await from.close();
    await to.close();
}

async function browse() {
    const connection = await connect(options.from);
    await (await sendAll(connection)).close();
    const browser = await receiver(connection, { address: options.address, distribution_mode: 'copy' });
    const browsed = await browser.whole;
    await browser.link.close();
    const consumer = await receiver(connection, options.address);
    const received = await consumer.whole;
    report('done', { browsed: browsed.details, ...received.details });
    await consumer.link.close();
    await connection.close();
}

// Does not wait for an answer in between.
async function unsubscribe() {
    const connection = await connect(options.from);
    const source = { address: options.address, durable: 2, expiry_policy: 'never' };
    const { link } = await receiver(connection, source, { name: options.address });
    report('done');
    link.close().catch(fail);
    await connection.close();
    process.exit();
}

async function hold() {
    const connection = await connect(options.from);
    await sendAll(connection);
    await (await receiver(connection, options.address, { autoaccept: false })).whole;
    report('held');
}

async function receive() {
    const connection = await connect(options.from);
    report('done', (await (await receiver(connection, options.address)).whole).details);
    await connection.close();
}

// Sends to itself before and after its router was killed.
async function reconnect() {
    const connection = await connect(options.from, { reconnect: true });
    let lost = false;
    let waits = false;
    let over = false;
    let sender;
    function send() {
        if (waits || !sender.sendable()) return;
        waits = true;
        sender.send({ body: lost ? 'after' : 'before' });
    }
    connection.on('disconnected', () => { lost = true; waits = false; });
    function received({ message }) {
        if (message.body === 'before' && !lost) report('ready');
        if (message.body !== 'after' || over) return;
        over = true;
        report('done');
        setImmediate(() => connection.close());
    }
    await connection.createReceiver({ source: options.address, onError: fail, onMessage: received });
    sender = await connection.createSender({ target: options.address }); // it waits for credit
    sender.on(SenderEvents.sendable, send);
    send();
}

({ exchange, request, browse, unsubscribe, hold, receive, reconnect })[thing]();
