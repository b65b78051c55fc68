//! The published facts, one row a task.
//!
//! Source: the public CARMA repository (itu-rad/CARMA), second version: README times, memory measured by
//! `nvidia-smi`, and the estimates of Horus, FakeTensor and GPUMemNet as its task files carry them.
//! 40,000 is its way of writing "unknown or too big". `mnist_train` has no published time: 3 minutes is
//! our assumption. Its batch sizes are those of the command line.

use super::Class::{Heavy, Light, Medium};
use super::activity::*;
use super::{Workload, work};

// work(name, class, GPUs, batch, minutes alone, measured MiB, [Horus, FakeTensor, GPUMemNet] MiB, activity)

/// Convolutional nets on ImageNet, one epoch, batch 32, 64 and 128.
#[rustfmt::skip] // One row a line.
pub(super) static IMAGENET: [Workload; 18] = [
    work("resnet", Medium, 1, 32, 34.96, 3934, [7903.9316, 2672.516, 16000.0], RESNET50[0]),
    work("resnet2", Medium, 1, 64, 32.58, 7106, [14910.3711, 5337.0131, 16000.0], RESNET50[1]),
    work("resnet3", Medium, 1, 128, 31.27, 13236, [28923.25, 10666.0072, 24000.0], RESNET50[2]),
    work("vgg", Medium, 1, 32, 50.77, 6684, [21525.8262, 3121.3446, 16000.0], VGG16[0]),
    work("vgg2", Medium, 1, 64, 46.7, 11760, [40000.0, 5379.0292, 16000.0], VGG16[1]),
    work("vgg3", Medium, 1, 128, 44.6, 21864, [40000.0, 9894.3984, 24000.0], VGG16[2]),
    work("Inception", Medium, 1, 32, 58.75, 5230, [5990.3652, 1590.3041, 8000.0], INCEPTION[0]),
    work("Inception2", Medium, 1, 64, 51.27, 9332, [11089.8086, 3158.3793, 16000.0], INCEPTION[1]),
    work("Inception3", Medium, 1, 128, 49.8, 17830, [21288.6953, 6298.1547, 16000.0], INCEPTION[2]),
    work("Xception", Medium, 1, 32, 49.86, 5918, [8531.7305, 4166.4706, 16000.0], XCEPTION[0]),
    work("Xception2", Medium, 1, 64, 48.82, 11106, [16176.2725, 8324.9169, 16000.0], XCEPTION[1]),
    work("Xception3", Medium, 1, 128, 47.57, 21236, [31465.3574, 16641.8095, 24000.0], XCEPTION[2]),
    work("efficientNet", Medium, 1, 32, 41.96, 3752, [3864.9053, 2730.01, 8000.0], EFFICIENTNET[0]),
    work("efficientNet2", Medium, 1, 64, 28.48, 6692, [6909.6362, 5454.9788, 16000.0], EFFICIENTNET[1]),
    work("efficientNet3", Medium, 1, 128, 27.52, 12666, [12999.0977, 10904.9107, 16000.0], EFFICIENTNET[2]),
    work("mobilenet", Medium, 1, 32, 29.47, 3352, [3617.0674, 2425.2795, 8000.0], MOBILENET[0]),
    work("mobilenet2", Medium, 1, 64, 25.7, 6032, [6420.7646, 4845.5422, 16000.0], MOBILENET[1]),
    work("mobilenet3", Medium, 1, 128, 25.44, 11336, [12028.1592, 9686.0675, 16000.0], MOBILENET[2]),
];

/// Language models on Wikipedia; those ending in `_2` take two GPUs.
#[rustfmt::skip] // One row a line.
pub(super) static LANGUAGE: [Workload; 5] = [
    work("BERT_base", Heavy, 1, 32, 14.92, 19828, [17456.9336, 40000.0, 32000.0], BERT_BASE),
    work("BERT_large", Heavy, 1, 8, 44.93, 12622, [13349.4346, 40000.0, 24000.0], BERT_LARGE),
    work("gpt2_large_2", Heavy, 2, 8, 65.72, 28356, [40000.0, 40000.0, 40000.0], GPT2_LARGE),
    work("xlnet_base_cased_2", Heavy, 2, 8, 59.04, 9192, [3661.7393, 40000.0, 16000.0], XLNET_BASE),
    work("xlnet_large_cased_2", Heavy, 2, 4, 58.74, 19330, [5325.0273, 40000.0, 16000.0], XLNET_LARGE),
];

/// Segmentation, detection, recommendation, and the digits that beginners start with.
#[rustfmt::skip] // One row a line.
pub(super) static OTHERS: [Workload; 4] = [
    work("UNet", Medium, 1, 8, 31.5, 9910, [2231.06, 3404.085, 8000.0], UNET),
    work("maskrcnn", Heavy, 1, 8, 112.07, 28606, [7902.3, 40000.0, 8000.0], MASK_RCNN),
    work("dlrm", Medium, 1, 32768, 25.24, 1468, [40000.0, 40000.0, 40000.0], DLRM),
    work("mnist_train", Light, 1, 32, 3.0, 1776, [1114.0823, 37.1719, 8000.0], MNIST),
];

/// Small nets on CIFAR-100, 20 or 50 epochs, batch 32, 64 and 128.
#[rustfmt::skip] // One row a line.
pub(super) static CIFAR: [Workload; 24] = [
    work("efficientNet_cifar100_20e_1", Light, 1, 32, 21.2, 666, [1348.8069, 64.12, 8000.0], EFFICIENTNET_SMALL[0]),
    work("efficientNet_cifar100_20e_2", Light, 1, 64, 21.8, 720, [1881.9978, 118.49, 8000.0], EFFICIENTNET_SMALL[1]),
    work("efficientNet_cifar100_20e_3", Light, 1, 128, 22.8, 866, [2948.3796, 233.36, 8000.0], EFFICIENTNET_SMALL[2]),
    work("efficientNet_cifar100_50e_1", Light, 1, 32, 53.0, 666, [1348.8069, 64.12, 8000.0], EFFICIENTNET_SMALL[0]),
    work("efficientNet_cifar100_50e_2", Light, 1, 64, 54.5, 720, [1881.9978, 118.49, 8000.0], EFFICIENTNET_SMALL[1]),
    work("efficientNet_cifar100_50e_3", Light, 1, 128, 57.0, 866, [2948.3796, 233.36, 8000.0], EFFICIENTNET_SMALL[2]),
    work("mobilenet_cifar100_20e_1", Light, 1, 32, 19.0, 590, [1348.8069, 15.1673, 8000.0], MOBILENET_SMALL[0]),
    work("mobilenet_cifar100_20e_2", Light, 1, 64, 10.0, 598, [1881.9978, 25.9092, 8000.0], MOBILENET_SMALL[1]),
    work("mobilenet_cifar100_20e_3", Light, 1, 128, 6.2, 632, [2948.3796, 49.1269, 8000.0], MOBILENET_SMALL[2]),
    work("mobilenet_cifar100_50e_1", Light, 1, 32, 47.5, 590, [1348.8069, 15.1673, 8000.0], MOBILENET_SMALL[0]),
    work("mobilenet_cifar100_50e_2", Light, 1, 64, 25.0, 598, [1881.9978, 25.9092, 8000.0], MOBILENET_SMALL[1]),
    work("mobilenet_cifar100_50e_3", Light, 1, 128, 15.5, 632, [2948.3796, 49.1269, 8000.0], MOBILENET_SMALL[2]),
    work("resnet18_cifar100_20e_1", Light, 1, 32, 9.8, 788, [2231.6129, 53.9945, 8000.0], RESNET18[0]),
    work("resnet18_cifar100_20e_2", Light, 1, 64, 4.6, 796, [3620.3953, 66.7567, 8000.0], RESNET18[1]),
    work("resnet18_cifar100_20e_3", Light, 1, 128, 3.4, 858, [6397.9595, 93.2812, 8000.0], RESNET18[2]),
    work("resnet18_cifar100_50e_1", Light, 1, 32, 24.5, 788, [2231.6129, 53.9945, 8000.0], RESNET18[0]),
    work("resnet18_cifar100_50e_2", Light, 1, 64, 11.5, 796, [3620.3953, 66.7567, 8000.0], RESNET18[1]),
    work("resnet18_cifar100_50e_3", Light, 1, 128, 3.4, 858, [6397.9595, 93.2812, 8000.0], RESNET18[2]),
    work("resnet34_cifar100_20e_1", Light, 1, 32, 16.6, 1002, [3513.4539, 94.2729, 8000.0], RESNET34[0]),
    work("resnet34_cifar100_20e_2", Light, 1, 64, 8.8, 1016, [6145.5171, 110.7851, 8000.0], RESNET34[1]),
    work("resnet34_cifar100_20e_3", Light, 1, 128, 4.4, 1074, [11409.6445, 145.3095, 8000.0], RESNET34[2]),
    work("resnet34_cifar100_50e_1", Light, 1, 32, 41.5, 1002, [3513.4539, 94.2729, 8000.0], RESNET34[0]),
    work("resnet34_cifar100_50e_2", Light, 1, 64, 22.0, 1016, [6145.5171, 110.7851, 8000.0], RESNET34[1]),
    work("resnet34_cifar100_50e_3", Light, 1, 128, 4.4, 1074, [11409.6445, 145.3095, 8000.0], RESNET34[2]),
];
