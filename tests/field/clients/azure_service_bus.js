'use strict';
// @azure/service-bus as programs write it, with the connection string of an emulator.

const { ServiceBusClient } = require('@azure/service-bus');
const WebSocket = require('ws');
const { thing, options, report, body, Received, fail } = require('./common');

function connect(end) {
    const place = `Endpoint=sb://${end.host}:${end.port}`;
    const key = 'SharedAccessKeyName=name;SharedAccessKey=key' + (end.tls ? '' : ';UseDevelopmentEmulator=true');
    const patience = { timeoutInMs: options.deadline_s * 1000, maxRetries: 100, retryDelayInMs: 100 };
    const web = end.web ? { webSocketOptions: { webSocket: WebSocket } } : {};
    return new ServiceBusClient(`${place};${key}`, { retryOptions: patience, ...web });
}

async function sendAll(client) {
    const sender = client.createSender(options.address);
    const sent = [];
    for (let number = 0; number < options.count; number++) sent.push(sender.sendMessages({ messageId: String(number), body: body(number) }));
    await Promise.all(sent);
    await sender.close();
}

async function receiveAll(receiver, then) {
    const received = new Received();
    const seen = new Set(); // a batch ends by a drain; what comes after that is given back, and may come a second time
    while (received.count < options.count) {
        const left = options.count - received.count;
        const some = await receiver.receiveMessages(Math.min(left, options.credit || left));
        for (const message of some) {
            if (!seen.has(message.messageId)) received.add(message.body);
            seen.add(message.messageId);
            if (then) await receiver.completeMessage(message);
        }
    }
    return received;
}

async function exchange() {
    const client = connect(options.from);
    const other = connect(options.to);
    const receiver = other.createReceiver(options.address);
    const sent = sendAll(client);
    const received = await receiveAll(receiver, true);
    await sent;
    report('done', { ...received.details, accepted: options.count });
    await client.close();
    await other.close();
}

async function browse() {
    const client = connect(options.from);
    await sendAll(client);
    const receiver = client.createReceiver(options.address);
    const browsed = new Received();
    for (const message of await receiver.peekMessages(options.count)) browsed.add(message.body);
    const received = await receiveAll(receiver, true);
    report('done', { browsed: browsed.details, ...received.details });
    await client.close();
}

async function unsubscribe() {
    const client = connect(options.from);
    const receiver = client.createReceiver(options.address);
    const sender = client.createSender(options.address);
    await sender.sendMessages({ messageId: 'w', body: 'welcome' });
    const [message] = await receiver.receiveMessages(1);
    await receiver.completeMessage(message);
    await sender.close();
    report('done');
    await Promise.all([receiver.close(), client.close()]);
}

async function hold() {
    const client = connect(options.from);
    await sendAll(client);
    await receiveAll(client.createReceiver(options.address), false);
    report('held');
}

async function receive() {
    const client = connect(options.from);
    report('done', (await receiveAll(client.createReceiver(options.address), true)).details);
    await client.close();
}

// Sends to itself before and after its router was killed.
async function reconnect() {
    const client = connect(options.from);
    const sender = client.createSender(options.address);
    const receiver = client.createReceiver(options.address);
    async function pass() {
        await sender.sendMessages({ messageId: 'x', body: 'x' });
        const [message] = await receiver.receiveMessages(1);
        await receiver.completeMessage(message);
    }
    await pass();
    report('ready');
    await new Promise((resolve) => process.stdin.once('data', resolve));
    await pass();
    report('done');
    await client.close();
    process.exit();
}

({ exchange, browse, unsubscribe, hold, receive, reconnect })[thing]().catch(fail);
